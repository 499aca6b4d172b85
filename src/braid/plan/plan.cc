#include "braid/plan/plan.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "braid/base/index.h"
#include "braid/plan/stage_context.h"
#include "braid/plan/stage_rounds.h"
#include "braid/plan/stash_peak.h"

namespace braid {
namespace {

struct Place {
  std::int32_t stage = -1, chunk = -1;
};

std::vector<Place> places(const Plan& plan) {
  std::vector<Place> place(plan.profile.layers.size());
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    for (std::size_t c = 0; c < plan.stages[s].chunks.size(); ++c) {
      for (const std::int32_t layer : plan.stages[s].chunks[c].layers) {
        place[static_cast<std::size_t>(layer)] = {static_cast<std::int32_t>(s),
                                                  static_cast<std::int32_t>(c)};
      }
    }
  }
  return place;
}

}  // namespace

bool is_uniform(const Plan& plan) {
  return std::none_of(plan.stages.begin(), plan.stages.end(),
                      [](const Stage& stage) { return stage.own.has_value(); });
}

Parallelism form_of(const Plan& plan, std::size_t stage) {
  const Stage& at = plan.stages[stage];
  Parallelism form = plan.parallel;
  if (!at.own) return form;
  form.tp = at.tp;
  form.cp = at.cp;
  form.dp = at.dp;
  form.ep = at.own->ep;
  form.replicate = 1;
  form.micro_batch = at.own->micro_batch;
  form.sequence_parallel = at.own->sequence_parallel;
  form.zero = at.own->zero;
  form.offload_optimizer = at.own->offload_optimizer;
  form.offload_weights = at.own->offload_weights;
  const std::int64_t round = std::int64_t{form.dp} * form.micro_batch;
  form.num_micro_batches = round > 0 ? plan.global_batch / round : 0;
  return form;
}

std::int64_t devices_used(const Plan& plan) {
  std::int64_t devices = 0;
  for (const Stage& stage : plan.stages) devices += static_cast<std::int64_t>(stage.devices.size());
  return devices;
}

double handover_bytes(const ProfileEdge& edge, const Parallelism& from, const Parallelism& to) {
  const std::int64_t senders = std::int64_t{from.tp} * from.cp * from.dp;
  const std::int64_t receivers = std::int64_t{to.tp} * to.cp * to.dp;
  const int parts = to.sequence_parallel ? to.tp : 1;
  if (receivers >= senders) {
    const std::int64_t samples = std::int64_t{from.dp} * from.micro_batch;
    const std::int64_t received = (samples + to.dp - 1) / to.dp;
    return edge.bytes * static_cast<double>(received) / (static_cast<double>(to.cp) * parts);
  }
  const double copies = static_cast<double>(to.tp) / parts;
  return edge.bytes * from.micro_batch * copies / (static_cast<double>(from.cp) * from.tp);
}

double boundary_bytes(const ProfileEdge& edge, const Parallelism& parallel) {
  const double split = static_cast<double>(parallel.cp) *
                       (parallel.sequence_parallel ? static_cast<double>(parallel.tp) : 1.0);
  return edge.bytes * parallel.micro_batch / split;
}

std::vector<ChunkEdge> chunk_edges(const Plan& plan) {
  struct Bytes {
    double forward = 0, backward = 0;
  };
  const std::vector<Place> place = places(plan);
  const bool uniform = is_uniform(plan);
  std::vector<Parallelism> forms;
  forms.reserve(plan.stages.size());
  for (std::size_t s = 0; !uniform && s < plan.stages.size(); ++s) {
    forms.push_back(form_of(plan, s));
  }
  std::map<std::tuple<int, int, int, int>, Bytes> sums;
  for (const ProfileEdge& edge : plan.profile.edges) {
    const Place from = place[static_cast<std::size_t>(edge.source)];
    const Place to = place[static_cast<std::size_t>(edge.target)];
    if (from.stage < 0 || to.stage < 0) continue;
    if (from.stage == to.stage && from.chunk == to.chunk) continue;
    Bytes& bytes = sums[{from.stage, from.chunk, to.stage, to.chunk}];
    if (uniform) {
      bytes.forward += boundary_bytes(edge, plan.parallel);
      continue;
    }
    const Parallelism& source = forms[static_cast<std::size_t>(from.stage)];
    const Parallelism& target = forms[static_cast<std::size_t>(to.stage)];
    bytes.forward += handover_bytes(edge, source, target);
    bytes.backward += handover_bytes(edge, target, source);
  }
  std::vector<ChunkEdge> edges;
  edges.reserve(sums.size());
  for (const auto& [key, bytes] : sums) {
    const auto [source_stage, source_chunk, target_stage, target_chunk] = key;
    edges.push_back({source_stage, source_chunk, target_stage, target_chunk, bytes.forward,
                     uniform ? -1 : bytes.backward});
  }
  return edges;
}

std::int64_t in_flight_chunks(ScheduleKind schedule, int pp, int stage, int vp,
                              std::int64_t num_micro_batches) {
  const std::int64_t m = num_micro_batches;
  switch (schedule) {
    case ScheduleKind::gpipe:
      return m * vp;
    case ScheduleKind::one_f_one_b:
      return one_f_one_b_in_flight(pp - stage, m);
    case ScheduleKind::interleaved:
      if (vp == 1) return one_f_one_b_in_flight(pp - stage, m);
      return std::min<std::int64_t>(
          m * vp, std::int64_t{2} * (pp - stage - 1) + std::int64_t{vp - 1} * pp + 1);
  }
  return m;
}

std::vector<MemoryBreakdown> memory_of_stages(const Plan& plan) {
  const Parallelism& parallel = plan.parallel;
  const auto stages = static_cast<int>(plan.stages.size());
  std::vector<std::int64_t> in_flight;
  if (parallel.vp == 1) in_flight = micro_batches_held(plan);
  std::vector<MemoryBreakdown> memory;
  memory.reserve(plan.stages.size());
  std::vector<ChunkTotals> totals;
  std::vector<StashRun> stashes;
  for (int s = 0; s < stages; ++s) {
    totals.clear();
    stashes.clear();
    for (const Chunk& chunk : plan.stages[at(s)].chunks) {
      totals.push_back(totals_of(plan.profile, chunk));
      add_chunk(totals.back().stash(), stashes);
    }
    const StashPeak peak = parallel.vp == 1 ? stash_peak(stashes.front().chunk, in_flight[at(s)])
                                            : stash_peak(parallel.schedule, stages, s,
                                                         parallel.num_micro_batches, stashes);
    memory.push_back(memory_of(totals, peak, StageContext(plan, at(s)).data_parallel()));
  }
  return memory;
}

}  // namespace braid
