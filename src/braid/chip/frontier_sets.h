#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "braid/chip/fitting_sets.h"
#include "braid/chip/frontier_tables.h"
#include "braid/chip/partition_sums.h"

namespace braid {

/// Which sets to look for.
struct FrontierQuery {
  double least_excess_bytes = 0;  ///< All that exceed the prices by more.
  std::size_t sets = 5;           ///< At most so many of each last kernel, those of most excess.
  /// A partial set that so many others are at least as good as is dropped. With more than one, sets
  /// of less than the most excess may be missed where a row has many labels.
  std::size_t better = 1;
  std::size_t row_labels = 1000;  ///< Of one subset of the frontier.
  double traffic_per_sram = 0.2;  ///< About what a byte of SRAM saves, to begin with.
};

struct FrontierAnswer {
  /// By last kernel in the order, the most excess first. With FrontierQuery::better of one, the
  /// first one's `excess_bytes` is at least that of every such set that fits.
  std::vector<std::vector<FittingSet>> sets;
  double traffic_per_sram = 0;  ///< For the next query.
  std::int64_t work = 0;        ///< Numbers read and written, about.
};

/// What a partial set may take, and where its kernels stand.
struct FrontierLimits {
  std::size_t labels = 0;  ///< At once, about.
  double sram_bytes = 0;
  std::vector<std::uint32_t> place;  ///< Of each kernel in the topological order.
};

/// The sets of kernels that exceed prices of all that fit on chip and lie between two downsets,
/// however many sets these are, by a label-setting dynamic program over a narrow frontier
/// (frontier_tables.h):
///
///     for each kernel in the order:
///       for each subset of the frontier, for each label of it:
///         keep the label without the kernel, and with it where SRAM allows
///       join the subsets that differ only in kernels that leave the frontier
///       in each subset, keep the labels that none dominates
///
/// A label has the excess and SRAM so far, and which kernels of the frontier come behind or before
/// a taken one; it is dominated by one that is as good in all of these. A pass backwards finds what
/// a label can gain at most, with SRAM paid for at a fixed price instead of limited (Lagrangian
/// relaxation; the least of three prices counts), and labels that cannot come to exceed the prices
/// are dropped, which is most. Where too many are left, several are joined to one as good as each.
/// No set that fits is missed. Sets need not be connected and may have more kernels than the chip
/// has tiles.
class FrontierSets {
 public:
  FrontierSets(const MapperTables& tables, const FrontierBudget& budget = {});

  /// Whether there is a limit of SRAM, and the frontier is narrow enough.
  bool complete() const { return !tables_.steps.empty(); }

  FrontierAnswer exceeding(std::span<const double> prices, const FrontierQuery& query = {}) const;

  /// What a set reads and writes.
  double traffic_bytes(const std::vector<std::uint32_t>& set) const {
    return tables_.traffic_bytes(set);
  }

 private:
  FrontierTables tables_;
  FrontierLimits limits_;
};

}  // namespace braid
