#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace braid {

/// The linear program: the least Σ cost(P) x(P) with x ≥ 0 that covers every row once, where each
/// column P is a set of rows; and its dual: the most Σ price(row) with price(P) ≤ cost(P) for every
/// P.
class CoveringProgram {
 public:
  explicit CoveringProgram(std::size_t rows) : rows_(rows) {}

  std::size_t rows() const { return rows_; }
  double cost(std::size_t column) const { return costs_[column]; }

  /// A set of at least one row, each once, and its finite cost.
  void add_column(std::span<const std::uint32_t> rows, double cost);
  std::size_t columns() const { return costs_.size(); }

  struct Solution {
    std::vector<double> prices;     ///< By row; they satisfy the dual.
    std::vector<std::size_t> used;  ///< Columns with x > 0, largest first.
    std::vector<double> shares;     ///< Their x.
    std::int64_t work = 0;
  };

  /// The best prices when `most_work` (numbers read or written) is enough, else some. Needs a
  /// column of each row alone. Primal simplex method on a dense inverse of the basis, from the
  /// basis of single rows; columns of `first` enter first. Then prices of columns whose cost they
  /// exceed are lowered evenly. Deterministic.
  Solution solve(std::int64_t most_work, std::span<const std::size_t> first = {}) const;

  std::span<const std::uint32_t> column(std::size_t at) const {
    return std::span(members_).subspan(begins_[at], begins_[at + 1] - begins_[at]);
  }

 private:
  std::size_t rows_;
  std::vector<std::uint32_t> members_;
  std::vector<std::size_t> begins_ = {0};
  std::vector<double> costs_;
};

}  // namespace braid
