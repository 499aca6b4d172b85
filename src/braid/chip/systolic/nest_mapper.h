#pragma once

#include <cstdint>

#include "braid/chip/systolic/nest_mapping.h"

namespace braid {

enum class NestStatus : std::uint8_t {
  optimal,    ///< No mapping of the space takes fewer cycles.
  infeasible  ///< A buffer holds no tile of one unit in each dimension.
};

struct MappedNest {
  NestStatus status = NestStatus::infeasible;
  NestMapping mapping;
  NestCost cost;            ///< Infinite cycles where infeasible.
  double bound_cycles = 0;  ///< No mapping at all takes fewer (nest_bound.h).
  /// What the best mapping takes beyond the bound, as a share of the bound.
  double gap() const { return cost.cycles / bound_cycles - 1; }
};

/// A mapping of the space of NestMapping that takes the fewest cycles; among such, one of few HBM
/// words (not proven to be fewest). Sizes of the nest, cores, rows, columns and words of a unit are
/// at least 1; without any flow, or where no tile fits, the answer is infeasible.
///
/// Branch and bound. About 5 us in the middle, as most nests have a mapping at a bound that is
/// looked at first; milliseconds where whole steps of hundreds of small cores leave gaps. Allocates
/// nothing.
MappedNest map_nest(const LoopNest& nest, const SystolicMachine& machine);

}  // namespace braid
