#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "braid/plan/plan.h"
#include "braid/plan/stage_rounds.h"
#include "braid/schedule/work_order.h"

namespace braid {

// Orders of whole passes for a Pipeline: each stage has a device, and its chunks are what Work
// calls stages, numbered stage · vp + chunk.

/// The order that `kind` prescribes for a chain of pp stages of vp chunks and m micro-batches.
/// GPipe runs chunk after chunk, each over all micro-batches, then the same backwards. 1F1B has one
/// chunk per stage (asserted). Interleaving is 1F1B for vp = 1; else it deals micro-batches to
/// chunks in groups of pp, after (pp - stage - 1)·2 + (vp - 1)·pp warm-up passes, and needs m to be
/// a multiple of pp (checked where plans are timed; asserted here).
WorkOrder make_schedule(ScheduleKind kind, int pp, int vp, std::int64_t num_micro_batches);

/// GPipe or 1F1B for stages of one chunk that form any directed acyclic graph, each with its own
/// number of micro-batches: `first` forward passes, as forwards_first (stage_rounds.h) or the plan
/// has them, then backward and forward passes in turn.
WorkOrder make_graph_schedule(ScheduleKind kind, std::span<const StageRounds> rounds,
                              std::span<const std::int64_t> first);

/// The same for stages of one number of micro-batches. `depths` as from
/// stage_depths. A stage of depth d runs min(m, d) forward passes before its first backward pass,
/// so that every stage starts them one earlier than its successors can ask for.
WorkOrder make_graph_schedule(ScheduleKind kind, std::span<const int> depths,
                              std::int64_t num_micro_batches);

/// The order of passes that runs (pass_runs.h) of a stage of one chunk stand for.
std::vector<Work> passes_of(std::int32_t stage, std::span<const PassRun> runs);

}  // namespace braid
