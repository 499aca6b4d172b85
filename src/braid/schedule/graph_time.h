#pragma once

#include <cstdint>
#include <vector>

#include "braid/schedule/pipeline.h"
#include "braid/schedule/steady_state.h"

namespace braid {

/// Buffers that calls share so that none of them allocates; any contents will do.
struct GraphWorkspace {
  std::vector<StageTiming> stages;  ///< [stage]: result of the last call.

  /// One way of a transfer as a chunk's passes see it: what they start, or wait for.
  struct Way {
    std::int32_t read = 0;    ///< Place in `state` of the arrival that a pass waits for.
    std::int32_t write = 0;   ///< Place of the link that a pass of the other direction starts.
    std::int32_t target = 0;  ///< Interleaved: place of the first arrival at the other end.
    bool first = false;       ///< Interleaved: of all that arrive there for a micro-batch.
    double time_s = 0;        ///< Of what is started.
  };
  /// Ways grouped by chunk: those of chunk c from first[c] up to first[c + 1].
  struct Ways {
    std::vector<std::int32_t> first;
    std::vector<Way> ways;
  };
  Ways out, in;                    ///< Transfers by source and by target.
  Ways by_sender;                  ///< Links by the stage that sends.
  std::vector<std::int32_t> link;  ///< Of each transfer; interleaved: forward, then back.
  std::vector<std::int32_t> senders, receivers, grouped, newest, sender_of_link;
  std::vector<std::int32_t> depth, order, back_order, waiting;
  std::vector<std::int32_t> history;  ///< Of each link: where its past arrivals are, or -1.
  std::vector<std::int32_t> sources, targets;  ///< Interleaved: positions in the pipeline.
  std::vector<std::int32_t> forward_cell, backward_cell;  ///< [position]: place of its arrivals.
  /// The pass of a stage that is next: its chunk, and where in its group the micro-batch is.
  struct Turn {
    std::int32_t chunk = 0, slot = 0;
  };
  std::vector<Turn> forward_turn, backward_turn;
  std::vector<double> times_s, back_times_s, ready_s, state;
  SteadyState steady;
};

/// Times `pipeline` when its transfers join the stages in any acyclic way, by the rules of
/// docs/timeline.md, and leaves per-stage figures in `workspace.stages`. Chunks of an interleaved
/// pipeline may be joined in any way that leads on in the order of the pipeline. Returns the time
/// of one iteration; a negative number for what it cannot time: stages with micro-batches of their
/// own or an order of their own, several chunks a stage in GPipe, and transfers or warm-ups that
/// contradict the schedule.
///
/// As chain_time_s, it runs round by round, one pass of each direction on every stage, until the
/// pipeline repeats itself, and adds the other rounds in one step. What a transfer carries back can
/// be waited for many rounds later where the other end is on a longer way too: such arrivals are
/// kept as long. Cost: linear in passes and transfers of the rounds; a few nanoseconds each. No
/// allocation once the workspace has grown.
double graph_time_s(const Pipeline& pipeline, GraphWorkspace& workspace);

}  // namespace braid
