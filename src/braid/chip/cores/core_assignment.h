#pragma once

#include <span>
#include <vector>

#include "braid/chip/cores/block_state.h"
#include "braid/chip/cores/core_problem.h"
#include "braid/chip/cores/core_schedule.h"

namespace braid {

/// The operators of a block with the chip's own cores, in the block's order, for moves that were
/// made one after the other from its initial state. `start_s` is added to all times.
std::vector<PlacedOperator> assigned_cores(const CoreBlock& block, const CoreCounts& cores,
                                           std::span<const CoreMove> moves, double start_s);

}  // namespace braid
