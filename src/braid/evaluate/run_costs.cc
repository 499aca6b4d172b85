#include "braid/evaluate/run_costs.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>

#include "braid/base/dtype.h"
#include "braid/system/links.h"

namespace braid {
namespace {

constexpr double kHour = 3600;

/// Group and number of the node that a device is in.
std::pair<std::size_t, std::int64_t> node_of(const System& system, std::int64_t device) {
  std::size_t g = 0;
  while (g + 1 < system.groups.size()) {
    const std::int64_t devices = system.groups[g].nodes * system.groups[g].devices_per_node;
    if (device < devices) break;
    device -= devices;
    ++g;
  }
  return {g, device / system.groups[g].devices_per_node};
}

/// Of all nodes that the plan uses; nullopt where one has no price.
std::optional<double> usd_per_hour(const Plan& plan) {
  std::set<std::pair<std::size_t, std::int64_t>> nodes;
  for (const Stage& stage : plan.stages) {
    for (const std::int64_t device : stage.devices) nodes.insert(node_of(plan.system, device));
  }
  double usd = 0;
  for (const auto& [group, node] : nodes) {
    if (plan.system.groups[group].node_usd_per_hour == 0) return std::nullopt;
    usd += plan.system.groups[group].node_usd_per_hour;
  }
  return usd;
}

/// Rated power of all chips that the plan uses; nullopt where one is not known.
std::optional<double> watts(const Plan& plan) {
  double sum = 0;
  for (const Stage& stage : plan.stages) {
    for (const std::int64_t device : stage.devices) {
      const std::optional<double> power_w = chip_at(plan.system, device).power_w;
      if (!power_w) return std::nullopt;
      sum += *power_w;
    }
  }
  return sum;
}

}  // namespace

CheckpointSchedule daly_schedule(double save_s, double recover_s, double mtbf_s) {
  CheckpointSchedule schedule;
  const double ratio = save_s / (2 * mtbf_s);
  schedule.interval_s =
      ratio < 1 ? std::sqrt(2 * save_s * mtbf_s) * (1 + std::sqrt(ratio) / 3 + ratio / 9) - save_s
                : mtbf_s;
  const double longer = mtbf_s * std::exp(recover_s / mtbf_s) *
                        std::expm1((schedule.interval_s + save_s) / mtbf_s) / schedule.interval_s;
  schedule.goodput = 1 / longer;
  return schedule;
}

RunCosts run_costs(const Candidate& candidate, double tokens, const FailureModel& failures) {
  const Plan& plan = candidate.plan;
  RunCosts costs;
  const auto devices = static_cast<double>(devices_used(plan));
  const double per_iteration = static_cast<double>(plan.global_batch) *
                               static_cast<double>(std::max<std::int64_t>(1, plan.seq_len));
  costs.iterations = std::ceil(tokens / per_iteration);
  costs.compute_s = costs.iterations * candidate.metrics.iteration_time_s;
  const double checkpoint_bytes =
      plan.model_parameters *
      (bytes_per_element(plan.precision.weight) + plan.precision.optimizer_bytes_per_parameter);
  costs.checkpoint_s = checkpoint_bytes / (devices * failures.checkpoint_bytes_per_s);
  const CheckpointSchedule schedule =
      daly_schedule(costs.checkpoint_s, failures.restart_s + costs.checkpoint_s,
                    failures.device_mtbf_s / devices);
  costs.goodput = schedule.goodput;
  costs.checkpoint_interval_s = schedule.interval_s;
  costs.wall_s = costs.compute_s / costs.goodput;
  costs.device_hours = devices * costs.wall_s / kHour;
  if (const auto usd = usd_per_hour(plan)) costs.usd = *usd * costs.wall_s / kHour;
  if (const auto power_w = watts(plan)) costs.kwh = *power_w * costs.wall_s / kHour / 1000;
  return costs;
}

}  // namespace braid
