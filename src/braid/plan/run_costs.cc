#include "braid/plan/run_costs.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>

#include <fmt/format.h>

#include "braid/base/dtype.h"
#include "braid/base/quantity.h"
#include "braid/system/links.h"

namespace braid {
namespace {

constexpr double kHour = 3600;

/// Of each kind of node the plan uses: how many.
std::vector<std::int64_t> nodes_used(const Plan& plan) {
  std::set<std::pair<std::size_t, std::int64_t>> nodes;
  for (const Stage& stage : plan.stages) {
    // Devices are ascending: most share their node with the one before.
    std::optional<Placement> last;
    for (const std::int64_t device : stage.devices) {
      const Placement place = placement_of(plan.system, device);
      if (last && last->node == place.node) continue;
      nodes.emplace(place.group, place.node);
      last = place;
    }
  }
  std::vector<std::int64_t> counts(plan.system.groups.size(), 0);
  for (const auto& [group, node] : nodes) ++counts[group];
  return counts;
}

/// Devices of each group that the plan uses.
std::vector<std::int64_t> devices_of_groups(const Plan& plan) {
  std::vector<std::int64_t> counts(plan.system.groups.size(), 0);
  for (const Stage& stage : plan.stages) {
    for (const std::int64_t device : stage.devices) {
      ++counts[placement_of(plan.system, device).group];
    }
  }
  return counts;
}

void add_price(const Plan& plan, RunCosts& costs) {
  const std::vector<std::int64_t> nodes = nodes_used(plan);
  double usd_per_hour = 0;
  std::string said;
  for (std::size_t g = 0; g < nodes.size(); ++g) {
    if (nodes[g] == 0) continue;
    const DeviceGroup& group = plan.system.groups[g];
    if (group.node_usd_per_hour == 0) {
      costs.assumptions.push_back(
          fmt::format("no price of a node of {} is known: price_per_hour in the cluster's file, or "
                      "--price-per-hour",
                      group.chip.name));
      return;
    }
    usd_per_hour += static_cast<double>(nodes[g]) * group.node_usd_per_hour;
    said += fmt::format("{}{} node{} of {} x {} at {:.6g} USD an hour{}", said.empty() ? "" : ", ",
                        nodes[g], nodes[g] == 1 ? "" : "s", group.devices_per_node, group.chip.name,
                        group.node_usd_per_hour, nodes[g] == 1 ? "" : " each");
  }
  costs.usd = usd_per_hour * costs.wall_s / kHour;
  std::string source;
  for (const Provenance& entry : plan.system.provenance) {
    if (entry.key == "price_per_hour") source = " (" + entry.source + ")";
  }
  costs.assumptions.push_back("price: " + said + source + "; nodes are paid for whole");
}

void add_energy(const Plan& plan, double pue, RunCosts& costs) {
  const std::vector<std::int64_t> devices = devices_of_groups(plan);
  double power_w = 0;
  std::string said;
  for (std::size_t g = 0; g < devices.size(); ++g) {
    if (devices[g] == 0) continue;
    const Chip& chip = plan.system.groups[g].chip;
    if (!chip.power_w) {
      costs.assumptions.push_back(
          fmt::format("no power of {} is known: power in the chip's file", chip.name));
      return;
    }
    power_w += static_cast<double>(devices[g]) * *chip.power_w;
    said += fmt::format("{}{} x {:.6g} W", said.empty() ? "" : ", ", devices[g], *chip.power_w);
  }
  costs.kwh = pue * power_w * costs.wall_s / kHour / 1000;
  costs.assumptions.push_back(
      fmt::format("energy: {}, the chips' rated power all the time, times {:.4g} (PUE){}", said,
                  pue, pue == 1 ? "; hosts, network, storage and cooling are left out" : ""));
}

std::string time_text(double time_s) {
  if (time_s < 120) return format_seconds(time_s);
  if (time_s < 2 * kHour) return fmt::format("{:.1f} min", time_s / 60);
  return fmt::format("{:.1f} h", time_s / kHour);
}

void say_failures(const FailureModel& failures, RunCosts& costs) {
  const FailureModel usual;
  costs.assumptions.push_back(fmt::format(
      "failures: one in {:.0f} h of a device{}, so one in {} of the job; they come at random",
      failures.device_mtbf_s / kHour,
      failures.device_mtbf_s == usual.device_mtbf_s
          ? ", as in Llama 3's training (arXiv:2407.21783, 3.3.4; --mtbf)"
          : "",
      time_text(costs.mtbf_s)));
  const auto by_rate = [&](const std::optional<double>& given, const char* option) {
    return given ? std::string()
                 : fmt::format(" ({} a device as Llama 3's storage, arXiv:2407.21783, 3.3.1; {})",
                               format_bytes_per_s(failures.checkpoint_bytes_per_s), option);
  };
  costs.assumptions.push_back(fmt::format(
      "checkpoints: {} of weights and optimizer state, one after every {} of work (Daly 2006); {} "
      "to save{}, {} to load{}",
      format_bytes(costs.checkpoint_bytes), time_text(costs.checkpoint_interval_s),
      time_text(costs.checkpoint_s), by_rate(failures.save_s, "--save-time"),
      time_text(costs.load_s), by_rate(failures.load_s, "--load-time")));
  costs.assumptions.push_back(fmt::format(
      "restarts: {} from a failure to the start of loading{}", time_text(failures.restart_s),
      failures.restart_s == usual.restart_s ? ", assumed (--restart-time)" : ""));
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

RunCosts run_costs(const Candidate& candidate, const RunQuestion& question) {
  const Plan& plan = candidate.plan;
  const FailureModel& failures = question.failures;
  RunCosts costs;
  costs.tokens = question.tokens;
  const auto devices = static_cast<double>(devices_used(plan));
  const double per_iteration = static_cast<double>(plan.global_batch) *
                               static_cast<double>(std::max<std::int64_t>(1, plan.seq_len));
  costs.iterations = std::ceil(question.tokens / per_iteration);
  costs.compute_s = costs.iterations * candidate.metrics.iteration_time_s;
  costs.checkpoint_bytes = plan.model_parameters * (bytes_per_element(plan.precision.weight) +
                                                    plan.precision.optimizer_bytes_per_parameter);
  const double by_rate_s = costs.checkpoint_bytes / (devices * failures.checkpoint_bytes_per_s);
  costs.checkpoint_s = failures.save_s.value_or(by_rate_s);
  costs.load_s = failures.load_s.value_or(by_rate_s);
  costs.mtbf_s = failures.device_mtbf_s / devices;
  const CheckpointSchedule schedule =
      daly_schedule(costs.checkpoint_s, failures.restart_s + costs.load_s, costs.mtbf_s);
  costs.goodput = schedule.goodput;
  costs.checkpoint_interval_s = schedule.interval_s;
  costs.wall_s = costs.compute_s / costs.goodput;
  costs.device_hours = devices * costs.wall_s / kHour;
  if (plan.seq_len == 0) {
    costs.assumptions.emplace_back("the model has no sequence: samples are counted, not tokens");
  }
  say_failures(failures, costs);
  add_price(plan, costs);
  add_energy(plan, question.pue, costs);
  return costs;
}

}  // namespace braid
