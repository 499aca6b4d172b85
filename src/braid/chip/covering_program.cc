#include "braid/chip/covering_program.h"

#include <algorithm>
#include <cmath>

namespace braid {
namespace {

constexpr double kTolerance = 1e-9;

double sum_of(std::span<const std::uint32_t> rows, const std::vector<double>& prices) {
  double sum = 0;
  for (const std::uint32_t row : rows) sum += prices[row];
  return sum;
}

}  // namespace

void CoveringProgram::add_column(std::span<const std::uint32_t> rows, double cost) {
  members_.insert(members_.end(), rows.begin(), rows.end());
  begins_.push_back(members_.size());
  costs_.push_back(cost);
}

CoveringProgram::Solution CoveringProgram::solve(std::int64_t most_work,
                                                 std::span<const std::size_t> first) const {
  Solution solution;
  std::vector<double>& prices = solution.prices;
  prices.assign(rows_, 0);
  std::vector<std::size_t> basis(rows_, 0);
  for (std::size_t c = 0; c < columns(); ++c) {
    if (column(c).size() != 1) continue;
    prices[column(c)[0]] = costs_[c];
    basis[column(c)[0]] = c;
  }
  const double scale = *std::max_element(prices.begin(), prices.end());
  // The inverse column by column; right-hand sides differ a little, so that few pivots stand still.
  std::vector<double> inverse(rows_ * rows_, 0), basic(rows_), direction(rows_);
  for (std::size_t i = 0; i < rows_; ++i) {
    inverse[i * rows_ + i] = 1;
    basic[i] = 1 + 1e-4 * static_cast<double>(i * 7919 % 1009) / 1009;
  }
  const std::size_t block = std::max<std::size_t>(1000, columns() / 16);
  std::size_t cursor = 0;
  std::int64_t& work = solution.work;
  while (work < most_work) {
    // The column that lowers the cost fastest, of the first block that has any.
    double least = -kTolerance * scale;
    std::size_t entering = columns();
    const auto look_at = [&](std::size_t at) {
      const double reduced = costs_[at] - sum_of(column(at), prices);
      if (reduced < least) {
        least = reduced;
        entering = at;
      }
      work += static_cast<std::int64_t>(column(at).size());
    };
    for (const std::size_t at : first) look_at(at);
    for (std::size_t looked_at = 0; looked_at < columns() && entering == columns();) {
      const std::size_t end = std::min(looked_at + block, columns());
      for (; looked_at < end; ++looked_at) {
        look_at(cursor);
        cursor = cursor + 1 == columns() ? 0 : cursor + 1;
      }
    }
    if (entering == columns()) break;
    std::fill(direction.begin(), direction.end(), 0);
    for (const std::uint32_t row : column(entering)) {
      const double* const from = &inverse[row * rows_];
      for (std::size_t i = 0; i < rows_; ++i) direction[i] += from[i];
    }
    std::size_t leaving = rows_;
    for (std::size_t i = 0; i < rows_; ++i) {
      if (direction[i] <= kTolerance) continue;
      if (leaving == rows_ || basic[i] * direction[leaving] < basic[leaving] * direction[i]) {
        leaving = i;
      }
    }
    if (leaving == rows_) break;
    const double pivot = direction[leaving];
    const double step = std::max(0.0, basic[leaving]) / pivot;
    for (std::size_t i = 0; i < rows_; ++i) basic[i] -= step * direction[i];
    basic[leaving] = step;
    basis[leaving] = entering;
    work += static_cast<std::int64_t>(rows_ * (column(entering).size() + 4));
    for (std::size_t j = 0; j < rows_; ++j) {
      double* const to = &inverse[j * rows_];
      if (to[leaving] == 0) continue;
      const double factor = to[leaving] / pivot;
      prices[j] += least * factor;
      for (std::size_t i = 0; i < rows_; ++i) to[i] -= factor * direction[i];
      to[leaving] = factor;
      work += static_cast<std::int64_t>(2 * rows_);
    }
  }
  for (std::size_t c = 0; c < columns(); ++c) {
    const double excess = sum_of(column(c), prices) - costs_[c];
    if (excess <= 0) continue;
    for (const std::uint32_t row : column(c)) {
      prices[row] -= excess / static_cast<double>(column(c).size());
    }
  }
  // Sums of them in other orders are rounded otherwise.
  for (double& price : prices) price -= 1e-9 * std::abs(price);
  std::vector<std::size_t> by_size;
  for (std::size_t i = 0; i < rows_; ++i) {
    if (basic[i] > kTolerance) by_size.push_back(i);
  }
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&](std::size_t a, std::size_t b) { return basic[a] > basic[b]; });
  solution.used.reserve(by_size.size());
  solution.shares.reserve(by_size.size());
  for (const std::size_t i : by_size) {
    solution.used.push_back(basis[i]);
    solution.shares.push_back(basic[i]);
  }
  return solution;
}

}  // namespace braid
