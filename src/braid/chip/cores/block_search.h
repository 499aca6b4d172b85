#pragma once

#include <cstdint>
#include <vector>

#include "braid/chip/cores/block_state.h"
#include "braid/chip/cores/core_block.h"

namespace braid {

struct BlockSolution {
  std::vector<CoreMove> moves;  ///< In the order of their starts.
  double makespan_s = 0;
  double bound_s = 0;     ///< No schedule of the block takes less; equal when that is proven.
  std::int64_t work = 0;  ///< Moves tried.
};

/// The schedule of a block that takes least, in at most about `most_work` moves, but for the list
/// schedules that the search begins with, which it is never worse than.
///
/// Operators are put into the schedule in the order of their starts, each as early as it can, on a
/// core or on all. Layer n holds what has been reached with n operators; of two with the same
/// operators, one that is ahead in nothing is left out, and so is what a bound shows to be no
/// better than the best schedule yet. Layers are cut to a width that grows eightfold until nothing
/// is cut: then the best schedule is proven (docs/core-schedule.md).
BlockSolution search_block(const CoreBlock& block, std::int64_t most_work);

/// Operators put one after the other by a rule: the best of a few such schedules. O(operators²).
BlockSolution list_schedule(const CoreBlock& block);

}  // namespace braid
