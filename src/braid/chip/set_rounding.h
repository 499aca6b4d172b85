#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "braid/chip/fitting_sets.h"
#include "braid/chip/partition_sums.h"

namespace braid {

/// How much work goes into rounding.
struct RoundingBudget {
  std::size_t width = 1000;         ///< Ways to cover the first kernels that are kept.
  std::size_t windows = 300;        ///< In which sets are chosen anew,
  std::size_t window_kernels = 48;  ///< with about so many kernels,
  std::size_t window_width = 100;   ///< keeping so many ways.
};

/// An order of the kernels in which disjoint sets that move little stand together and can run one
/// after the other. `sets`: for each kernel those that it is the root of, itself alone among them,
/// the greatest excess first, at the best prices of the linear program that covers kernels with
/// sets. The excess that the chosen sets lack together is what they move more than that program
/// says.
///
/// A beam search: each kernel in topological order that is not covered yet is covered by one of its
/// sets, but by none that would have to wait for others in turn; of what has covered all kernels up
/// to one, the `width` that lack least go on. Then the sets around one random kernel after the
/// other are chosen anew in the same way among the rest, where there are more kernels than that.
/// Deterministic.
std::vector<std::uint32_t> round_sets(const MapperTables& tables,
                                      const std::vector<std::vector<FittingSet>>& sets,
                                      const RoundingBudget& budget = {});

}  // namespace braid
