#pragma once

#include <cstdint>
#include <vector>

#include "braid/plan/plan.h"
#include "braid/schedule/pipeline.h"
#include "braid/schedule/steady_state.h"

namespace braid {

/// A pipeline whose chunks hand over each to the next and to no other. Chunks are in pipeline
/// order: chunk c of stage s is number c·pp + s.
struct ChainTimes {
  ScheduleKind schedule = ScheduleKind::one_f_one_b;  ///< vp > 1: interleaved.
  int pp = 1, vp = 1;
  std::int64_t num_micro_batches = 1;
  std::vector<double> forward_s, backward_s;  ///< [chunk], whole passes.
  std::vector<double> hop_s;    ///< [chunk]: handover to the next, each way; the last one unused.
  std::vector<StageSync> sync;  ///< [stage]
};

/// What calls share so that none of them allocates, and so that the passes of a chain that differs
/// from the last one in its synchronisation alone are not timed again.
struct ChainWorkspace {
  std::vector<StageTiming> stages;  ///< [stage]: result of the last call.

  ChainTimes timed;  ///< The chain whose passes these are; its synchronisation left out.
  std::vector<double> passes_end_s, first_forward_end_s;  ///< [stage], waiting for no parameters.
  std::vector<double> state, hop_forward, hop_backward, ready_s;
  SteadyState steady;
};

/// Time of one iteration by the rules of docs/timeline.md; per-stage figures are left in
/// `workspace.stages`. Times are finite and not negative; interleaving needs a multiple of pp
/// micro-batches.
///
/// Cost: a nanosecond or less per pass, for as many micro-batches as it takes until the pipeline
/// repeats itself; the others are added in one step (SteadyState). Passes that are those of the
/// last call are not timed again unless parameters arrive late in the middle of the pipeline. No
/// allocation once the workspace has grown.
double chain_time_s(const ChainTimes& chain, ChainWorkspace& workspace);

}  // namespace braid
