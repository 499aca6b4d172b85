#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "braid/plan/plan.h"
#include "braid/schedule/alike_turns.h"
#include "braid/schedule/pipeline.h"
#include "braid/schedule/steady_state.h"

namespace braid {

/// The greater of two times, in the form that compilers turn into one instruction.
constexpr double later(double a, double b) { return a > b ? a : b; }

/// A pipeline whose chunks hand over each to the next and to no other. Chunks are in pipeline
/// order: chunk c of stage s is number c·pp + s.
struct ChainTimes {
  ScheduleKind schedule = ScheduleKind::one_f_one_b;  ///< vp > 1: interleaved.
  int pp = 1, vp = 1;
  std::int64_t num_micro_batches = 1;
  std::vector<double> forward_s, backward_s;  ///< [chunk], whole passes.
  std::vector<double> hop_s;    ///< [chunk]: handover to the next, each way; the last one unused.
  std::vector<StageSync> sync;  ///< [stage]
  /// Chains timed in one workspace that share it differ in their synchronisation alone; 0: unknown.
  std::uint64_t passes_id = 0;
};

/// Ends of a chain's passes: all of its timing but the synchronisation after them.
struct TimedPasses {
  ChainTimes chain;             ///< Without its synchronisation. pp = 0: nothing timed yet.
  std::vector<double> ready_s;  ///< [stage]: no first pass ends before; empty: no waiting.
  std::vector<double> passes_end_s, first_forward_end_s;  ///< [stage]
};

/// What calls share so that none of them allocates, and so that passes are not timed again that
/// were timed a few chains ago: searches look at many chains that differ in their synchronisation
/// or their memory alone.
struct ChainWorkspace {
  std::vector<StageTiming> stages;  ///< [stage]: result of the last call.

  std::array<TimedPasses, 12> timed;  ///< A ring.
  std::size_t newest = 0;
  std::vector<double> ready_s, state, hop_forward, hop_backward, rows;
  struct alignas(64) Block {
    std::byte times[64];
  };
  std::vector<Block> blocks;
  SteadyState steady;
  AlikeTurns alike;
};

/// Time of one iteration by the rules of docs/timeline.md; per-stage figures are left in
/// `workspace.stages`. Times are finite and not negative; interleaving needs a multiple of pp
/// micro-batches.
///
/// Cost: a nanosecond or less per pass, for as many micro-batches as it takes until the pipeline
/// repeats itself; the others are added in one step (SteadyState). Passes that are those of one of
/// the last calls are not timed again. No allocation once the workspace has grown.
double chain_time_s(const ChainTimes& chain, ChainWorkspace& workspace);

}  // namespace braid
