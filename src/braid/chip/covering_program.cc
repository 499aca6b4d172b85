#include "braid/chip/covering_program.h"

#include <algorithm>
#include <numeric>

namespace braid {
namespace {

constexpr double kTolerance = 1e-9;
/// By how much right-hand sides differ, so that few pivots stand still.
constexpr double kPerturbation = 1e-4;

double sum_of(std::span<const std::uint32_t> rows, const std::vector<double>& prices) {
  double sum = 0;
  for (const std::uint32_t row : rows) sum += prices[row];
  return sum;
}

}  // namespace

CoveringProgram::CoveringProgram(std::span<const double> costs)
    : rows_(costs.size()),
      members_(rows_),
      costs_(costs.begin(), costs.end()),
      basis_(rows_),
      prices_(costs_),
      inverse_(rows_ * rows_, 0),
      basic_(rows_),
      direction_(rows_) {
  std::iota(members_.begin(), members_.end(), 0U);
  std::iota(basis_.begin(), basis_.end(), std::size_t{0});
  for (std::size_t i = 0; i < rows_; ++i) {
    begins_.push_back(i + 1);
    scale_ = std::max(scale_, costs[i]);
    inverse_[i * rows_ + i] = 1;
    basic_[i] = 1 + kPerturbation * static_cast<double>(i * 7919 % 1009) / 1009;
  }
}

void CoveringProgram::add_column(std::span<const std::uint32_t> rows, double cost) {
  members_.insert(members_.end(), rows.begin(), rows.end());
  begins_.push_back(members_.size());
  costs_.push_back(cost);
}

bool CoveringProgram::solve(std::int64_t most_work) {
  const std::int64_t enough = work_ + most_work;
  const std::size_t block = std::max<std::size_t>(1000, columns() / 16);
  while (work_ < enough) {
    // The column that lowers the cost fastest, of the first block that has any.
    double least = -kTolerance * scale_;
    std::size_t entering = columns();
    for (std::size_t looked_at = 0; looked_at < columns() && entering == columns();) {
      const std::size_t end = std::min(looked_at + block, columns());
      for (; looked_at < end; ++looked_at) {
        const double reduced = costs_[cursor_] - sum_of(column(cursor_), prices_);
        if (reduced < least) {
          least = reduced;
          entering = cursor_;
        }
        work_ += static_cast<std::int64_t>(column(cursor_).size());
        cursor_ = cursor_ + 1 == columns() ? 0 : cursor_ + 1;
      }
    }
    if (entering == columns()) return true;
    std::fill(direction_.begin(), direction_.end(), 0);
    for (const std::uint32_t row : column(entering)) {
      const double* const from = &inverse_[row * rows_];
      for (std::size_t i = 0; i < rows_; ++i) direction_[i] += from[i];
    }
    std::size_t leaving = rows_;
    for (std::size_t i = 0; i < rows_; ++i) {
      if (direction_[i] <= kTolerance) continue;
      if (leaving == rows_ || basic_[i] * direction_[leaving] < basic_[leaving] * direction_[i]) {
        leaving = i;
      }
    }
    if (leaving == rows_) return false;
    const double pivot = direction_[leaving];
    const double step = std::max(0.0, basic_[leaving]) / pivot;
    for (std::size_t i = 0; i < rows_; ++i) basic_[i] -= step * direction_[i];
    basic_[leaving] = step;
    basis_[leaving] = entering;
    work_ += static_cast<std::int64_t>(rows_ * (column(entering).size() + 4));
    for (std::size_t j = 0; j < rows_; ++j) {
      double* const to = &inverse_[j * rows_];
      if (to[leaving] == 0) continue;
      const double factor = to[leaving] / pivot;
      prices_[j] += least * factor;
      for (std::size_t i = 0; i < rows_; ++i) to[i] -= factor * direction_[i];
      to[leaving] = factor;
      work_ += static_cast<std::int64_t>(2 * rows_);
    }
  }
  return false;
}

double CoveringProgram::objective() const {
  double sum = 0;
  for (std::size_t i = 0; i < rows_; ++i) sum += basic_[i] * costs_[basis_[i]];
  return sum;
}

}  // namespace braid
