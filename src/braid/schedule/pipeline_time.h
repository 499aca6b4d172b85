#pragma once

#include <span>
#include <vector>

#include "braid/schedule/chain_time.h"
#include "braid/schedule/graph_time.h"
#include "braid/schedule/pipeline.h"
#include "braid/schedule/schedule.h"

namespace braid {

/// Buffers that calls share so that none of them allocates; any contents will do.
struct PipelineWorkspace {
  Pipeline pipeline;
  ChainTimes chain_times;
  ChainWorkspace chain;
  GraphWorkspace graph;

  /// [stage]: result of the last call.
  const std::vector<StageTiming>& stages() const { return chain.stages; }
};

/// Time of one iteration of `pipeline`, by the rules of docs/timeline.md; per-stage figures are
/// left in `workspace.stages()`.
///
///     PipelineWorkspace workspace;   // one per thread
///     double time_s = pipeline_time_s(pipeline, workspace);
///
/// A chain (each chunk hands over to the next in pipeline order and to no other) takes what
/// chain_time_s (chain_time.h) does, stages that form another graph what graph_time_s does
/// (graph_time.h), anything else what evaluate() does (evaluate.h). Throws Error when the transfers
/// contradict the schedule. Preconditions as for check_pipeline.
double pipeline_time_s(const Pipeline& pipeline, PipelineWorkspace& workspace);

/// Same, from loads: uses workspace.pipeline.
double pipeline_time_s(ScheduleKind schedule, std::span<const StageLoad> loads,
                       std::span<const EdgeLoad> edges, std::int64_t num_micro_batches,
                       PipelineWorkspace& workspace);

/// Throws Error when `pipeline` has no valid schedule: no stages, no micro-batches, 1F1B with
/// several chunks, interleaving with a number of micro-batches that pp does not divide, times that
/// are negative or not finite, or more than `most_passes` passes.
void check_pipeline(const Pipeline& pipeline, std::int64_t most_passes);

/// Whether the transfers lead from each chunk to the next in pipeline order (all stages' first
/// chunks, then all second chunks …) and nowhere else. Needs at most one transfer per pair.
bool is_chain(const Pipeline& pipeline);

/// Whether pipeline_time_s takes the fast way: a chain, with one chunk per stage or interleaved, of
/// stages with as many micro-batches and the schedule's own order, and handovers that take as long
/// back.
bool has_chain_timer(const Pipeline& pipeline);

}  // namespace braid
