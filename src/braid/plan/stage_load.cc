#include "braid/plan/stage_load.h"

#include <algorithm>

#include "braid/plan/shared_gradients.h"
#include "braid/plan/stage_context.h"
#include "braid/system/links.h"

namespace braid {

std::vector<StageLoad> stage_loads(const Plan& plan) {
  std::vector<StageLoad> loads;
  loads.reserve(plan.stages.size());
  std::vector<ChunkTotals> totals;
  const std::int64_t passes =
      last_passes_of(plan.parallel.schedule, static_cast<int>(plan.stages.size()),
                     plan.parallel.num_micro_batches);
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    totals.clear();
    for (const Chunk& chunk : plan.stages[s].chunks) {
      totals.push_back(totals_of(plan.profile, chunk));
    }
    loads.push_back(load_of(totals, StageContext(plan, s).data_parallel(), passes));
  }
  const std::vector<double> shared_s = shared_gradient_sync_s(plan);
  for (std::size_t s = 0; s < loads.size(); ++s) loads[s].sync.shared_gradient_sync_s = shared_s[s];
  return loads;
}

double transfer_time_s(const Parallelism& parallel, const System& system, int source_stage,
                       int target_stage, double bytes, int senders) {
  const std::int64_t distance = (target_stage - source_stage) * stride_of(parallel, Axis::pp);
  const std::int64_t first = first_device(parallel, source_stage);
  const std::int64_t last = first + (parallel.tp - 1) * stride_of(parallel, Axis::tp) +
                            (parallel.cp - 1) * stride_of(parallel, Axis::cp) +
                            (parallel.dp - 1) * stride_of(parallel, Axis::dp);
  // Neighbouring devices up to the pipeline axis send at the same time.
  const std::int64_t block = stride_of(parallel, Axis::pp);
  const std::int64_t concurrent =
      senders * std::min<std::int64_t>(system.groups.front().devices_per_node, block);
  return std::max(point_to_point_s(system, first, first + distance, bytes, concurrent),
                  point_to_point_s(system, last, last + distance, bytes, concurrent));
}

int stages_sending(const Parallelism& parallel, const System& system) {
  if (parallel.schedule == ScheduleKind::gpipe) return 1;
  const std::int64_t block = stride_of(parallel, Axis::pp);
  const std::int64_t per_node = system.groups.front().devices_per_node;
  if (per_node % block != 0 || per_node / block % 2 != 0) return 1;
  // Interleaved, the ends of the pipeline hand over to each other.
  const std::int64_t nodes = (parallel.pp * block + per_node - 1) / per_node;
  return nodes > (parallel.vp > 1 ? 1 : 2) ? 2 : 1;
}

std::vector<Flow> handover_flows(std::span<const std::int64_t> senders,
                                 std::span<const std::int64_t> receivers) {
  const std::size_t count = std::max(senders.size(), receivers.size());
  std::vector<Flow> flows;
  flows.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    flows.push_back({senders[i * senders.size() / count], receivers[i * receivers.size() / count]});
  }
  return flows;
}

double handover_s(const System& system, std::span<const std::int64_t> senders,
                  std::span<const std::int64_t> receivers, double bytes) {
  if (bytes <= 0) return 0;
  return FlowTimes(system, handover_flows(senders, receivers)).slowest_s(bytes);
}

std::vector<EdgeLoad> edge_loads(const Plan& plan) {
  std::vector<EdgeLoad> loads;
  const bool uniform = is_uniform(plan);
  const int senders = uniform ? stages_sending(plan.parallel, plan.system) : 1;
  for (const ChunkEdge& edge : chunk_edges(plan)) {
    EdgeLoad load{edge, 0, -1};
    if (uniform) {
      if (edge.source_stage != edge.target_stage) {
        load.transfer_s = transfer_time_s(plan.parallel, plan.system, edge.source_stage,
                                          edge.target_stage, edge.bytes, senders);
      }
    } else {
      const auto& source = plan.stages[static_cast<std::size_t>(edge.source_stage)].devices;
      const auto& target = plan.stages[static_cast<std::size_t>(edge.target_stage)].devices;
      load.transfer_s = handover_s(plan.system, source, target, edge.bytes);
      const double back_s = handover_s(plan.system, target, source, edge.backward_bytes);
      if (back_s != load.transfer_s) load.backward_transfer_s = back_s;
    }
    loads.push_back(load);
  }
  return loads;
}

}  // namespace braid
