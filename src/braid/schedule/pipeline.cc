#include "braid/schedule/pipeline.h"

#include <algorithm>
#include <cassert>

#include "braid/base/index.h"

namespace braid {

void fill_pipeline(ScheduleKind schedule, std::span<const StageLoad> loads,
                   std::span<const EdgeLoad> edges, std::int64_t num_micro_batches,
                   Pipeline& pipeline) {
  assert(!loads.empty() && !loads.front().chunks.empty());
  pipeline.schedule = schedule;
  pipeline.pp = static_cast<int>(loads.size());
  pipeline.vp = static_cast<int>(loads.front().chunks.size());
  pipeline.num_micro_batches = num_micro_batches;
  pipeline.rounds.clear();
  pipeline.warm_ups.clear();
  pipeline.passes.clear();
  pipeline.forward_s.clear();
  pipeline.backward_s.clear();
  pipeline.sync.clear();
  pipeline.transfers.clear();
  for (const StageLoad& load : loads) {
    assert(load.chunks.size() == loads.front().chunks.size());
    for (const ChunkLoad& chunk : load.chunks) {
      pipeline.forward_s.push_back(chunk.forward_s());
      pipeline.backward_s.push_back(chunk.backward_s());
    }
    pipeline.sync.push_back(load.sync);
  }
  for (const EdgeLoad& load : edges) {
    const ChunkEdge& edge = load.edge;
    pipeline.transfers.push_back({edge.source_stage * pipeline.vp + edge.source_chunk,
                                  edge.target_stage * pipeline.vp + edge.target_chunk,
                                  load.transfer_s, load.backward_transfer_s});
  }
}

Pipeline make_pipeline(ScheduleKind schedule, std::span<const StageLoad> loads,
                       std::span<const EdgeLoad> edges, std::int64_t num_micro_batches) {
  Pipeline pipeline;
  fill_pipeline(schedule, loads, edges, num_micro_batches, pipeline);
  return pipeline;
}

void hold_for_sends(Pipeline& pipeline) {
  if (pipeline.vp > 1) return;
  for (Transfer& transfer : pipeline.transfers) {
    if (transfer.source == transfer.target) continue;
    pipeline.forward_s[at(transfer.source)] += transfer.time_s;
    pipeline.backward_s[at(transfer.target)] += transfer.back_s();
    transfer.held_s = transfer.time_s;
    transfer.backward_held_s = transfer.back_s();
    transfer.time_s = transfer.backward_time_s = 0;
  }
}

double parameters_ready_s(const StageSync& sync, double forward_s) {
  if (sync.parameter_sync_s <= 0) return 0;
  const double n = sync.buckets;
  return std::max(sync.parameter_sync_s / n + forward_s, sync.parameter_sync_s + forward_s / n);
}

double tail_s(const StageSync& sync, double backward_s) {
  return exposed_gradient_sync_s(sync, backward_s) + sync.shared_gradient_sync_s + sync.optimizer_s;
}

}  // namespace braid
