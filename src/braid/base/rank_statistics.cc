#include "braid/base/rank_statistics.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>
#include <vector>

#include "braid/base/infinity.h"

namespace braid {
namespace {

std::vector<std::size_t> rising_order(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  return order;
}

std::vector<double> ranks(std::span<const double> values) {
  const std::vector<std::size_t> order = rising_order(values);
  std::vector<double> rank(values.size());
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin + 1;
    while (end < order.size() && !(values[order[begin]] < values[order[end]])) ++end;
    for (std::size_t i = begin; i < end; ++i) {
      rank[order[i]] = static_cast<double>(begin + end - 1) / 2;
    }
    begin = end;
  }
  return rank;
}

}  // namespace

double rank_correlation(std::span<const double> a, std::span<const double> b) {
  assert(a.size() == b.size());
  const std::vector<double> x = ranks(a), y = ranks(b);
  const double mean = (static_cast<double>(a.size()) - 1) / 2;
  double product = 0, square_x = 0, square_y = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    product += (x[i] - mean) * (y[i] - mean);
    square_x += (x[i] - mean) * (x[i] - mean);
    square_y += (y[i] - mean) * (y[i] - mean);
  }
  if (!(square_x > 0) || !(square_y > 0)) return 0;
  return product / std::sqrt(square_x * square_y);
}

double top_regret(std::span<const double> predicted, std::span<const double> actual,
                  std::size_t top) {
  assert(predicted.size() == actual.size() && !actual.empty());
  const double best = *std::min_element(actual.begin(), actual.end());
  double found = kInfinity;
  const std::vector<std::size_t> order = rising_order(predicted);
  for (std::size_t i = 0; i < std::min(top, order.size()); ++i) {
    found = std::min(found, actual[order[i]]);
  }
  return found / best - 1;
}

}  // namespace braid
