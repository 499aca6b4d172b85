#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace braid {

/// The linear program: the least Σ cost(P) x(P) with x ≥ 0 that covers every row once, where each
/// column P is a set of rows; and its dual: the most Σ price(row) with price(P) ≤ cost(P) for every
/// P. Columns may be added after it was solved; it then goes on from there.
class CoveringProgram {
 public:
  /// With a column of each row alone, at these finite costs.
  explicit CoveringProgram(std::span<const double> costs);

  std::size_t rows() const { return rows_; }
  double cost(std::size_t column) const { return costs_[column]; }

  /// A set of at least one row, each once, and its finite cost.
  void add_column(std::span<const std::uint32_t> rows, double cost);
  std::size_t columns() const { return costs_.size(); }

  /// Improves on the solution until it is optimal (true) or has read or written `most_work`
  /// numbers. Primal simplex method on a dense inverse of the basis, from the basis of single rows.
  /// Deterministic.
  bool solve(std::int64_t most_work);

  /// By row. After `solve` was true they satisfy the dual but for rounding.
  const std::vector<double>& prices() const { return prices_; }
  /// Σ cost(P) x(P), of a right-hand side that is up to 1e-4 more than 1.
  double objective() const;
  std::int64_t work() const { return work_; }

  std::span<const std::uint32_t> column(std::size_t at) const {
    return std::span(members_).subspan(begins_[at], begins_[at + 1] - begins_[at]);
  }

 private:
  std::size_t rows_;
  std::vector<std::uint32_t> members_;
  std::vector<std::size_t> begins_ = {0};
  std::vector<double> costs_;
  double scale_ = 0;
  std::vector<std::size_t> basis_;
  std::vector<double> prices_, inverse_, basic_, direction_;  ///< The inverse column by column.
  std::size_t cursor_ = 0;
  std::int64_t work_ = 0;
};

}  // namespace braid
