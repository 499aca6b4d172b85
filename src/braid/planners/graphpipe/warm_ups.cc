#include "braid/planners/graphpipe/warm_ups.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <utility>

#include "braid/base/index.h"
#include "braid/base/least_threshold.h"
#include "braid/base/rounding.h"
#include "braid/plan/stage_context.h"
#include "braid/plan/stage_rounds.h"
#include "braid/planners/graphpipe/in_flight.h"
#include "braid/schedule/in_flight.h"
#include "braid/schedule/pipeline_time.h"
#include "braid/schedule/plan_graph.h"
#include "braid/schedule/plan_pipeline.h"

namespace braid {
namespace {

/// What the slowest stage or link takes for a micro-batch.
double period_s(const Pipeline& pipeline) {
  double longest_s = 0;
  for (std::size_t s = 0; s < pipeline.forward_s.size(); ++s) {
    longest_s = std::max(longest_s, pipeline.forward_s[s] + pipeline.backward_s[s]);
  }
  for (const Transfer& transfer : pipeline.transfers) {
    longest_s = std::max({longest_s, transfer.time_s, transfer.back_s()});
  }
  return longest_s;
}

/// In no stage more than in those before it. Stages are in topological order.
void limit_behind(const Pipeline& pipeline, WarmUps& warm_ups) {
  for (std::size_t s = 0; s < warm_ups.size(); ++s) {
    for (const Transfer& transfer : pipeline.transfers) {
      if (at(transfer.source) != s) continue;
      std::int64_t& next = warm_ups[at(transfer.target)];
      next = std::min(next, warm_ups[s]);
    }
  }
}

}  // namespace

WarmUps room_of(Plan plan) {
  set_warm_ups(plan, WarmUps(plan.stages.size(), 1));
  const std::vector<MemoryBreakdown> memory = memory_of_stages(plan);
  WarmUps room;
  room.reserve(memory.size());
  for (std::size_t s = 0; s < memory.size(); ++s) {
    const double all = static_cast<double>(form_of(plan, s).num_micro_batches);
    const double more = (usable_bytes_of_stage(plan, s) - memory[s].device_total()) /
                        memory[s].activations * kBelowRounding;
    // Without activations there is room for all of them, or for none whatever is in flight.
    const double count = std::isfinite(more) ? 1 + std::max(0.0, std::floor(more)) : all;
    room.push_back(static_cast<std::int64_t>(std::min(count, all)));
  }
  return room;
}

void set_warm_ups(Plan& plan, const WarmUps& warm_ups) {
  assert(warm_ups.size() == plan.stages.size());
  for (std::size_t s = 0; s < warm_ups.size(); ++s) {
    assert(plan.stages[s].own.has_value());
    plan.stages[s].own->warm_up = warm_ups[s];
  }
}

WarmUps rate_keeping_warm_ups(const Plan& plan) {
  const Pipeline pipeline = pipeline_to_time(plan).pipeline;
  assert(pipeline.vp == 1 && pipeline.rounds.empty());
  const double rate_s = period_s(pipeline);
  WarmUps warm_ups = room_of(plan);
  std::vector<RoundTripStage> stages;
  stages.reserve(warm_ups.size());
  for (std::size_t s = 0; s < warm_ups.size(); ++s) {
    stages.push_back({pipeline.forward_s[s], pipeline.backward_s[s]});
  }
  std::vector<RoundTripEdge> edges;
  edges.reserve(pipeline.transfers.size());
  for (const Transfer& transfer : pipeline.transfers) {
    edges.push_back({transfer.source, transfer.target, transfer.time_s, transfer.back_s()});
  }
  std::stable_sort(edges.begin(), edges.end(),
                   [](const auto& a, const auto& b) { return a.source < b.source; });
  const LeastInFlight wanted = least_in_flight(stages, edges, rate_s, pipeline.num_micro_batches);
  for (std::size_t s = 0; s < warm_ups.size(); ++s) {
    warm_ups[s] = std::min(warm_ups[s], wanted.micro_batches[s]);
  }
  limit_behind(pipeline, warm_ups);
  return warm_ups;
}

WarmUps time_keeping_warm_ups(const Plan& plan) {
  const std::vector<std::int64_t> one_by_one(plan.stages.size(), 1);
  const WarmUps wanted = least_warm_ups(timed_graph_of(plan), one_by_one);
  WarmUps warm_ups = room_of(plan);
  for (std::size_t s = 0; s < warm_ups.size(); ++s) {
    warm_ups[s] = std::min(warm_ups[s], wanted[s]);
  }
  limit_behind(pipeline_to_time(plan).pipeline, warm_ups);
  return warm_ups;
}

WarmUps fewest_warm_ups(const Plan& plan) {
  Pipeline pipeline = pipeline_to_time(plan).pipeline;
  if (pipeline.warm_ups.empty()) pipeline.warm_ups = forwards_first(plan);
  PipelineWorkspace workspace;
  const double best_s = pipeline_time_s(pipeline, workspace) * kAboveRounding;
  for (std::size_t s = pipeline.warm_ups.size(); s-- > 0;) {
    std::int64_t low = 0;  // Too few.
    for (const Transfer& transfer : pipeline.transfers) {
      if (at(transfer.source) == s) low = std::max(low, pipeline.warm_ups[at(transfer.target)] - 1);
    }
    std::int64_t& count = pipeline.warm_ups[s];
    count = first_where(low + 1, count, [&](std::int64_t fewer) {
      const std::int64_t enough = std::exchange(count, fewer);
      const bool in_time = pipeline_time_s(pipeline, workspace) <= best_s;
      count = enough;
      return in_time;
    });
  }
  return pipeline.warm_ups;
}

}  // namespace braid
