#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "braid/chip/cores/core_block.h"

namespace braid {

/// An operator that has begun: when it ends.
struct RunningOperator {
  std::int32_t op = 0;
  double end_s = 0;
};

/// The cores of a block after some of its operators have begun, in the order of their starts: what
/// the others can tell of these. No time is below begun_s.
struct BlockState {
  double begun_s = 0;   ///< Nothing else begins before.
  double latest_s = 0;  ///< When all that has begun has ended.
  /// The same of what runs on tensor cores and on vector cores; kept for AllCoresRule::own_kind.
  double tensor_s = 0, vector_s = 0;
  std::vector<double> tensors;  ///< When each of the counted cores is free.
  std::vector<double> vectors;
  std::vector<RunningOperator> running;  ///< Those that others wait for, ascending.
};

/// How an operator goes on next.
struct CoreMove {
  std::int32_t op = 0;
  bool all = false;
  std::int32_t tensor = -1;  ///< Index into BlockState::tensors; -1: on all, or not counted.
  std::int32_t vector = -1;
  double start_s = 0, end_s = 0;
};

/// An operator all of whose predecessors have begun, and when these have ended.
struct ReadyOperator {
  std::int32_t op = 0;
  double ready_s = 0;
};

BlockState initial_state(const CoreBlock& block);

/// All moves that a best schedule may need: each ready operator as early as it can on one core and,
/// where that takes less time, on all. Cores that look alike are tried once; where pairs do not
/// count
/// (`paired`: an operator that has not begun needs one), only the core that is free first.
void list_moves(const CoreBlock& block, const BlockState& state,
                std::span<const ReadyOperator> ready, bool paired, std::vector<CoreMove>& moves);

/// Leaves out moves that a best schedule does not need next:
/// - those that start when another operator could have come and gone on one core: there is room for
///   it before, where it delays nothing (active schedules: Giffler & Thompson 1960);
/// - those that start later than an operator that has cores enough and ends before all that has
///   begun has, or with it: it is in nobody's way.
void keep_needed(const CoreBlock& block, const BlockState& state, std::vector<CoreMove>& moves);

/// `paired`: of the operators that have not begun after the move.
void make_move(const CoreBlock& block, const CoreMove& move, bool paired, BlockState& state);

}  // namespace braid
