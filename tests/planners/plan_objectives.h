#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "braid/base/dtype.h"
#include "braid/plan/plan.h"
#include "braid/planners/phaze/objective.h"
#include "braid/schedule/pipeline_time.h"
#include "braid/schedule/timeline.h"
#include "braid/system/links.h"

#include "planners/plan_assignments.h"

namespace braid::test {

/// Bytes that a device sends to sum the gradients of these layers of a plan in rings, those of
/// experts over the replicas that hold the same ones.
inline double ring_bytes(const Plan& plan, const std::vector<std::int32_t>& layers) {
  double bytes = 0;
  const auto add = [&](double parameters, double replicas) {
    bytes +=
        2 * (replicas - 1) / replicas * parameters * bytes_per_element(plan.precision.gradient);
  };
  for (const std::int32_t layer : layers) {
    const LayerCost& cost = options_of(plan.profile, layer).front().cost;
    add(cost.dense_parameters, plan.parallel.dp);
    add(cost.expert_parameters, static_cast<double>(plan.parallel.dp) / plan.parallel.ep);
  }
  return bytes;
}

/// AMP's cost of a plan, from its profile and system alone.
inline double amp_cost_s(const Plan& plan) {
  const Parallelism& form = plan.parallel;
  double longest_s = 0, sum_s = 0, longest_sync_s = 0;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    double stage_s = 0;
    const std::vector<std::int32_t>& layers = plan.stages[s].chunks.front().layers;
    for (const std::int32_t layer : layers) {
      const LayerCost& cost = options_of(plan.profile, layer).front().cost;
      stage_s += cost.forward.total_s() + cost.backward_s();
    }
    longest_s = std::max(longest_s, stage_s);
    sum_s += stage_s;
    double slowest = std::numeric_limits<double>::infinity();
    for (int r = 0; r < form.dp; ++r) {
      const auto& devices = plan.stages[s].devices;
      const auto device = [&](int replica) {
        return devices[static_cast<std::size_t>(replica % form.dp * form.tp)];
      };
      slowest = std::min(slowest, link_bytes_per_s(plan.system, device(r), device(r + 1)));
    }
    if (form.dp > 1) {
      longest_sync_s = std::max(longest_sync_s, ring_bytes(plan, layers) / slowest);
    }
  }
  for (std::size_t cut = 1; cut < plan.stages.size(); ++cut) {
    const double bytes = boundary_bytes({0, 0, crossing_bytes(plan, cut)}, form);
    sum_s +=
        transfer_time_s(form, plan.system, static_cast<int>(cut) - 1, static_cast<int>(cut), bytes);
  }
  return static_cast<double>(form.num_micro_batches - 1) * longest_s + sum_s + longest_sync_s;
}

/// Phaze's time of a plan, from its profile and system alone.
inline double phaze_time_s(const Plan& plan, PhazeObjective objective) {
  const Parallelism& form = plan.parallel;
  const std::int64_t devices = plan.system.device_count;
  const double bytes_per_s = devices > 1 ? link_bytes_per_s(plan.system, 0, devices - 1) : 1;
  const std::size_t stages = plan.stages.size();
  const auto sent_s = [&](std::size_t cut) {
    if (cut == 0 || cut == stages) return 0.0;
    return boundary_bytes({0, 0, crossing_bytes(plan, cut)}, form) / bytes_per_s;
  };
  const auto m = static_cast<double>(form.num_micro_batches);
  double longest_s = 0, sum_s = 0, late_s = 0, backward_before_s = 0, first_sync_s = 0;
  Pipeline pipeline;
  pipeline.schedule = ScheduleKind::one_f_one_b;
  pipeline.pp = static_cast<int>(stages);
  pipeline.num_micro_batches = form.num_micro_batches;
  for (std::size_t s = 0; s < stages; ++s) {
    double forward_s = sent_s(s), backward_s = sent_s(s + 1);
    const std::vector<std::int32_t>& layers = plan.stages[s].chunks.front().layers;
    for (const std::int32_t layer : layers) {
      const LayerCost& cost = options_of(plan.profile, layer).front().cost;
      forward_s += cost.forward.total_s();
      backward_s += cost.backward_s();
    }
    const double sync_s = ring_bytes(plan, layers) / bytes_per_s;
    if (s == 0) first_sync_s = sync_s;
    longest_s = std::max(longest_s, forward_s + backward_s);
    sum_s += forward_s + backward_s;
    late_s = std::max(late_s, sync_s - backward_before_s);
    backward_before_s += backward_s;
    pipeline.forward_s.push_back(forward_s);
    pipeline.backward_s.push_back(backward_s);
    StageSync sync;
    sync.gradient_sync_s = sync_s;
    pipeline.sync.push_back(sync);
    const auto at = static_cast<std::int32_t>(s);
    if (s > 0) pipeline.transfers.push_back({at - 1, at, 0});
  }
  PipelineWorkspace workspace;
  if (objective == PhazeObjective::simulated) return pipeline_time_s(pipeline, workspace);
  if (objective == PhazeObjective::flush) return (m - 1) * longest_s + sum_s + late_s;
  return (m + static_cast<double>(stages) - 1) * longest_s + first_sync_s;
}

}  // namespace braid::test
