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
/// words (not proven to be fewest).
MappedNest map_nest(const LoopNest& nest, const SystolicMachine& machine);

}  // namespace braid
