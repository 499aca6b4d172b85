#include "braid/search/graph_bound.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "braid/base/infinity.h"
#include "braid/base/rounding.h"

namespace braid {
namespace {

/// What a second of each entry's time counts: (of_sum + of_longest · w) such that all layers count
/// as much wherever they are, but where they count more anyway.
std::vector<double> prices(std::span<const StagePace> stages, double of_sum, double of_longest) {
  std::vector<double> all_s;
  all_s.reserve(stages.size());
  for (const StagePace& stage : stages) {
    all_s.push_back(std::accumulate(stage.layer_s.begin(), stage.layer_s.end(), 0.0));
  }
  std::vector<std::size_t> by_pace(stages.size());
  std::iota(by_pace.begin(), by_pace.end(), 0);
  std::sort(by_pace.begin(), by_pace.end(),
            [&](std::size_t a, std::size_t b) { return all_s[a] < all_s[b]; });
  double level = kInfinity, rate = 0, weights = of_longest;
  for (const std::size_t entry : by_pace) {
    if (!(of_sum * all_s[entry] < level) || !(all_s[entry] > 0)) break;
    const auto count = static_cast<double>(stages[entry].count);
    weights += count * of_sum;
    rate += count / all_s[entry];
    level = weights / rate;
  }
  std::vector<double> found;
  found.reserve(stages.size());
  for (const double entry_s : all_s) {
    found.push_back(entry_s > 0 && rate > 0 ? std::max(of_sum, level / entry_s) : of_sum);
  }
  return found;
}

}  // namespace

double least_pipeline_s(std::span<const StagePace> stages, double of_sum, double of_longest) {
  const std::vector<double> price = prices(stages, of_sum, of_longest);
  double priced_s = 0, longest_s = 0, sum_s = 0;
  for (std::size_t layer = 0; layer < stages.front().layer_s.size(); ++layer) {
    double least = kInfinity, least_s = kInfinity;
    for (std::size_t entry = 0; entry < stages.size(); ++entry) {
      const double layer_s = stages[entry].layer_s[layer];
      least = std::min(least, price[entry] * layer_s);
      least_s = std::min(least_s, layer_s);
    }
    priced_s += least;
    longest_s = std::max(longest_s, least_s);
    sum_s += least_s;
  }
  return std::max(priced_s, of_sum * sum_s + of_longest * longest_s) * kBelowRounding;
}

}  // namespace braid
