#include "braid/plan/stage_load.h"

#include <algorithm>

#include "braid/plan/totals.h"

namespace braid {

std::vector<StageLoad> stage_loads(const Plan& plan) {
  std::vector<StageLoad> loads;
  loads.reserve(plan.stages.size());
  const auto context = data_parallel_context(plan.parallel, plan.precision, plan.system);
  std::vector<ChunkTotals> totals;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    totals.clear();
    for (const Chunk& chunk : plan.stages[s].chunks) {
      totals.push_back(totals_of(plan.profile, chunk));
    }
    loads.push_back(load_of(totals, context));
  }
  return loads;
}

double transfer_time_s(const Parallelism& parallel, const System& system, int source_stage,
                       int target_stage, double bytes) {
  const std::int64_t distance = (target_stage - source_stage) * stride_of(parallel, Axis::pp);
  const std::int64_t first = first_device(parallel, source_stage);
  const std::int64_t last = first + (parallel.tp - 1) * stride_of(parallel, Axis::tp) +
                            (parallel.cp - 1) * stride_of(parallel, Axis::cp) +
                            (parallel.dp - 1) * stride_of(parallel, Axis::dp);
  // Neighbouring devices up to the pipeline axis send at the same time.
  const std::int64_t block = stride_of(parallel, Axis::pp);
  const std::int64_t concurrent =
      std::min<std::int64_t>(system.groups.front().devices_per_node, block);
  return std::max(point_to_point_s(system, first, first + distance, bytes, concurrent),
                  point_to_point_s(system, last, last + distance, bytes, concurrent));
}

std::vector<EdgeLoad> edge_loads(const Plan& plan) {
  std::vector<EdgeLoad> loads;
  for (const ChunkEdge& edge : chunk_edges(plan)) {
    const double transfer_s = edge.source_stage == edge.target_stage
                                  ? 0
                                  : transfer_time_s(plan.parallel, plan.system, edge.source_stage,
                                                    edge.target_stage, edge.bytes);
    loads.push_back({edge, transfer_s});
  }
  return loads;
}

}  // namespace braid
