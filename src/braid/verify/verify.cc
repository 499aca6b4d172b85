#include "braid/verify/verify.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "braid/base/quantity.h"
#include "braid/base/rounding.h"
#include "braid/system/links.h"
#include "braid/verify/checks.h"

namespace braid {
namespace {

/// Rounding of millions of passes adds up to more than kToleranceShare.
constexpr double kClaimTolerance = 1e-6;

double bytes_of(Dtype dtype) { return static_cast<double>(bits_per_element(dtype)) / 8; }

/// Parameter elements of a stage on one device, whole and as the shard of one rank.
struct Elements {
  double whole = 0, shard = 0, largest_layer = 0, stated_bytes = 0, working_bytes = 0;
};

Elements elements_of(const Plan& plan, std::size_t s) {
  const Stage& stage = plan.stages[s];
  const Parallelism p = form_of(plan, s);
  const double ranks = static_cast<double>(p.dp) * p.cp / p.replicate;
  const double expert_ranks = static_cast<double>(p.expert_axis()) / p.replicate;
  Elements elements;
  for (const Chunk& chunk : stage.chunks) {
    for (std::size_t i = 0; i < chunk.layers.size(); ++i) {
      const Option& option = option_at(plan, chunk, i);
      const LayerCost& cost = option.cost;
      const double layer = cost.dense_parameters + cost.expert_parameters;
      elements.whole += layer;
      elements.shard +=
          cost.dense_parameters / ranks + cost.expert_parameters * p.ep / expert_ranks;
      elements.largest_layer = std::max(elements.largest_layer, layer);
      elements.working_bytes = std::max(elements.working_bytes, cost.working_bytes);
      if (cost.fixed_bytes > 0) elements.stated_bytes += cost.fixed_bytes;
    }
  }
  return elements;
}

/// Bytes that one device of a stage cannot do without at its fullest moment.
double device_bytes(const Plan& plan, std::size_t s, double peak_stash_bytes) {
  const Parallelism p = form_of(plan, s);
  const Precision& precision = plan.precision;
  const Elements e = elements_of(plan, s);
  const double weight = bytes_of(precision.weight);
  const double gradient = bytes_of(precision.gradient);
  double bytes = peak_stash_bytes + e.working_bytes;
  if (p.offload_weights) {
    bytes += 2 * e.largest_layer * weight;
  } else {
    bytes += e.stated_bytes + weight * (p.zero == Zero::parameters ? e.shard : e.whole);
  }
  if (p.zero == Zero::parameters) bytes += 2 * e.largest_layer * weight;
  const bool shard_gradients = p.zero == Zero::gradients || p.zero == Zero::parameters;
  bytes += gradient * (shard_gradients ? e.shard + e.largest_layer : e.whole);
  if (!p.offload_optimizer) {
    bytes += precision.optimizer_bytes_per_parameter * (p.zero == Zero::none ? e.whole : e.shard);
  }
  return bytes;
}

/// Bytes that one device of a stage keeps on the host at its fullest moment.
double host_bytes(const Plan& plan, std::size_t s, double peak_offloaded_bytes) {
  const Parallelism p = form_of(plan, s);
  const Elements e = elements_of(plan, s);
  double bytes = peak_offloaded_bytes;
  if (p.offload_weights) {
    bytes += bytes_of(plan.precision.weight) * (p.zero == Zero::parameters ? e.shard : e.whole);
  }
  if (p.offload_optimizer) {
    bytes +=
        plan.precision.optimizer_bytes_per_parameter * (p.zero == Zero::none ? e.whole : e.shard);
  }
  return bytes;
}

/// Empty when what every stage offloads fits its devices' shares of host memory.
std::string host_fault(const Plan& plan, const Replay& replayed) {
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const double needed = host_bytes(plan, s, replayed.peak_offloaded_bytes[s]);
    for (const std::int64_t device : plan.stages[s].devices) {
      const auto& host = chip_at(plan.system, device).host;
      const double available = host ? host->bytes : 0;
      if (needed > available * kAboveTolerance + 1) {
        return fmt::format("stage {} offloads {} a device, its host has capacity for {}: {} short",
                           s + 1, format_bytes(needed), format_bytes(available),
                           format_bytes(needed - available));
      }
    }
  }
  return "";
}

Check memory_check(const Plan& plan, const Replay& replayed, double& peak_bytes) {
  double least_room = 0;
  std::string tightest;
  bool holds = true;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const double needed = device_bytes(plan, s, replayed.peak_stash_bytes[s]);
    double available = usable_bytes(chip_at(plan.system, plan.stages[s].devices.front()));
    for (const std::int64_t device : plan.stages[s].devices) {
      available = std::min(available, usable_bytes(chip_at(plan.system, device)));
    }
    peak_bytes = std::max(peak_bytes, needed);
    const double room = available - needed;
    if (tightest.empty() || room < least_room) {
      least_room = room;
      const bool fits = needed <= available * kAboveRounding;
      tightest =
          fmt::format("stage {} needs {} of {} usable{}", s + 1, format_bytes(needed),
                      format_bytes(available), fits ? "" : ": " + format_bytes(-room) + " short");
    }
    holds = holds && needed <= available * kAboveRounding;
  }
  const std::string fault = host_fault(plan, replayed);
  if (!fault.empty()) return {"memory", false, fault};
  return {"memory", holds, tightest};
}

/// Whether claimed time and memory are those found.
Check claims_check(const Claims& claims, const Verification& found) {
  const double off = std::abs(claims.iteration_time_s - found.iteration_time_s);
  const bool same_time = off <= kClaimTolerance * found.iteration_time_s;
  const double off_bytes = std::abs(claims.peak_memory_bytes - found.peak_memory_bytes);
  const bool same_memory = off_bytes <= kToleranceShare * found.peak_memory_bytes;
  return {"claims", same_time && same_memory,
          fmt::format("{:.9g} s claimed, {:.9g} s replayed; {:.9g} GiB claimed, {:.9g} GiB needed",
                      claims.iteration_time_s, found.iteration_time_s,
                      claims.peak_memory_bytes / kGiB, found.peak_memory_bytes / kGiB)};
}

/// The plan's own arithmetic at the peak of all devices together.
double arithmetic_bound_s(const Plan& plan) {
  double flops = 0;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const Stage& stage = plan.stages[s];
    const double passes = static_cast<double>(form_of(plan, s).num_micro_batches) *
                          static_cast<double>(stage.devices.size());
    for (const Chunk& chunk : stage.chunks) {
      for (std::size_t i = 0; i < chunk.layers.size(); ++i) {
        flops += option_at(plan, chunk, i).cost.model_flops * passes;
      }
    }
  }
  double rate = 0;
  std::int64_t left = plan.system.device_count;
  for (const DeviceGroup& group : plan.system.groups) {
    const std::int64_t devices = std::min(left, group.nodes * group.devices_per_node);
    left -= devices;
    rate +=
        static_cast<double>(devices) * matmul_peak(group.chip, plan.precision.matmul).value_or(0);
  }
  return rate > 0 ? flops / rate : 0;
}

}  // namespace

bool Verification::holds() const {
  return std::all_of(checks.begin(), checks.end(), [](const Check& check) { return check.holds; });
}

Verification verify(const Plan& plan) { return verify(plan, plan.claims); }

Verification verify(const Plan& plan, const std::optional<Claims>& claims) {
  Verification result;
  const auto add = [&result](const char* name, const std::string& fault,
                             const std::string& figures) {
    result.checks.push_back({name, fault.empty(), fault.empty() ? figures : fault});
    return fault.empty();
  };
  // What a check builds on must hold, or it is left out.
  if (!add("coverage", coverage_fault(plan),
           fmt::format("{} layers, each in one of {} stages", plan.profile.layers.size(),
                       plan.stages.size()))) {
    return result;
  }
  const bool options = add("options", options_fault(plan), "each layer runs as the plan says");
  const bool edges = add("edges", edges_fault(plan),
                         fmt::format("{} edges, all forward", plan.profile.edges.size()));
  const bool devices =
      add("devices", devices_fault(plan),
          fmt::format("{} of {} devices, each once", devices_used(plan), plan.system.device_count));
  const bool batch =
      add("batch", batch_fault(plan),
          is_uniform(plan)
              ? fmt::format("dp {} x micro-batch {} x {} = {}", plan.parallel.dp,
                            plan.parallel.micro_batch, plan.parallel.num_micro_batches,
                            plan.global_batch)
              : fmt::format("dp x micro-batch of every stage divides {}", plan.global_batch));
  if (!(options && edges && devices && batch)) return result;

  const Replay replayed = replay(plan);
  if (!add("schedule", replayed.fault,
           fmt::format("{} passes, each once, none before its inputs", replayed.passes))) {
    return result;
  }
  result.checks.push_back(memory_check(plan, replayed, result.peak_memory_bytes));
  result.iteration_time_s = replayed.time_s;
  result.lower_bound_s = arithmetic_bound_s(plan);
  result.checks.push_back(
      {"time",
       replayed.time_s >= replayed.busiest_stage_s * kBelowTolerance &&
           replayed.time_s <= replayed.serial_s * kAboveTolerance,
       fmt::format("replayed {:.6g} s; busiest stage {:.6g} s, all work one by one {:.6g} s",
                   replayed.time_s, replayed.busiest_stage_s, replayed.serial_s)});
  result.checks.push_back({"bound", replayed.time_s >= result.lower_bound_s * kBelowTolerance,
                           fmt::format("replayed {:.6g} s, all arithmetic at peak takes {:.6g} s",
                                       replayed.time_s, result.lower_bound_s)});
  if (claims) result.checks.push_back(claims_check(*claims, result));
  return result;
}

}  // namespace braid
