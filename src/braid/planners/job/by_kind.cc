#include "braid/planners/job/by_kind.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

#include "braid/base/error.h"
#include "braid/base/infinity.h"
#include "braid/planners/job/job_layers.h"
#include "braid/planners/job/mixed_job.h"
#include "braid/planners/job/usable_groups.h"
#include "braid/schedule/timeline.h"
#include "braid/system/part.h"

namespace braid {
namespace {

void worsen(Efficiency& worst, const Efficiency& other) {
  worst.narrow_matmul_peak_fraction = std::min(worst.narrow_share(), other.narrow_share());
  for (double Efficiency::*share :
       {&Efficiency::matmul_peak_fraction, &Efficiency::vector_peak_fraction,
        &Efficiency::attention_peak_fraction, &Efficiency::memory_peak_fraction}) {
    worst.*share = std::min(worst.*share, other.*share);
  }
  worst.memory_half_bytes = std::max(worst.memory_half_bytes, other.memory_half_bytes);
  worst.kernel_launch_s = std::max(worst.kernel_launch_s, other.kernel_launch_s);
}

/// Rates that both chips list, at the lower figure.
std::vector<PeakRate> lower_peaks(const Chip& a, const Chip& b) {
  std::vector<PeakRate> peaks;
  for (const PeakRate& peak : a.peaks) {
    const auto other = matmul_peak(b, peak.dtype);
    if (other) peaks.push_back({peak.dtype, std::min(peak.matmul_flops_per_s, *other)});
  }
  return peaks;
}

void worsen(Chip& worst, const Chip& other) {
  if (worst.name != other.name) worst.name += " + " + other.name;
  worst.peaks = lower_peaks(worst, other);
  worst.vector_flops_per_s = std::min(worst.vector_flops_per_s, other.vector_flops_per_s);
  worst.compute_units = std::min(worst.compute_units, other.compute_units);
  worst.compute_capability =
      worst.compute_capability && other.compute_capability
          ? std::optional(std::min(*worst.compute_capability, *other.compute_capability))
          : std::nullopt;
  const double usable = std::min(usable_bytes(worst), usable_bytes(other));
  worst.memory.bytes = std::min(worst.memory.bytes, other.memory.bytes);
  worst.memory.bytes_per_s = std::min(worst.memory.bytes_per_s, other.memory.bytes_per_s);
  worst.reserved_bytes = std::max(0.0, worst.memory.bytes - usable);
  if (!worst.on_chip || !other.on_chip || other.on_chip->bytes < worst.on_chip->bytes) {
    worst.on_chip = worst.on_chip && other.on_chip ? other.on_chip : std::nullopt;
  }
  if (worst.host && other.host) {
    worst.host->bytes = std::min(worst.host->bytes, other.host->bytes);
    worst.host->bytes_per_s = std::min(worst.host->bytes_per_s, other.host->bytes_per_s);
  } else {
    worst.host.reset();
  }
  worsen(worst.efficiency, other.efficiency);
}

void worsen(NetworkLevel& worst, const NetworkLevel& other) {
  if (other.bytes_per_s < worst.bytes_per_s) {
    worst.topology = other.topology;
    worst.torus_dims = other.torus_dims;
  }
  worst.bytes_per_s = std::min(worst.bytes_per_s, other.bytes_per_s);
  worst.unit_bytes_per_s = std::min(worst.unit_bytes_per_s, other.unit_bytes_per_s);
  worst.latency_s = std::max(worst.latency_s, other.latency_s);
  worst.efficiency = std::min(worst.efficiency, other.efficiency);
  worst.half_bytes = std::max(worst.half_bytes, other.half_bytes);
}

/// Shardings are searched for on one kind of device.
void require_manual(const Job& job, const System& system) {
  if (job.sharding == ShardingSource::manual) return;
  throw Error(Where{"", 0, "--sharding"},
              "this planner finds shardings for one kind of device on a hierarchical network",
              "leave it out, plan on one group of " + system.name + ", or with --planner braid");
}

}  // namespace

System slowest_of(const System& system) {
  System slow;
  slow.name = system.name;
  slow.device_count = system.device_count;
  std::int64_t per_node = 0;
  double uplink = kInfinity;
  for (const DeviceRun& run : device_runs(system)) {
    per_node = std::gcd(per_node, run.devices_per_node);
    const System part = group_of(system, run.group);
    const DeviceGroup& group = part.groups.front();
    if (slow.groups.empty()) {
      slow.groups = part.groups;
      slow.levels = part.levels;
    }
    worsen(slow.groups.front().chip, group.chip);
    worsen(slow.groups.front().intra_node, group.intra_node);
    for (std::size_t l = 0; l < slow.levels.size(); ++l) worsen(slow.levels[l], part.levels[l]);
    if (!part.levels.empty()) {
      const NetworkLevel& level = part.levels.front();
      uplink = std::min({uplink, std::max(level.unit_bytes_per_s, level.bytes_per_s),
                         group.node_bytes_per_s > 0 ? group.node_bytes_per_s : uplink});
    }
  }
  assert(per_node > 0);  // A system has devices.
  // Where larger nodes are cut, some of what was inside now lies between.
  for (const DeviceGroup& group : system.groups) {
    if (group.devices_per_node == per_node || slow.levels.empty()) continue;
    worsen(slow.levels.front(), group.intra_node);
    uplink =
        std::min(uplink, std::max(group.intra_node.bytes_per_s, group.intra_node.unit_bytes_per_s));
  }
  DeviceGroup& group = slow.groups.front();
  group.devices_per_node = per_node;
  group.nodes = (system.device_count + per_node - 1) / per_node;
  group.intra_node.size = per_node;
  group.node_bytes_per_s = 0;
  if (!system.bandwidth_matrix.empty()) {
    double least = kInfinity;
    for (std::size_t i = 0; i < system.bandwidth_matrix.size(); ++i) {
      const bool diagonal = i % (static_cast<std::size_t>(system.device_count) + 1) == 0;
      if (!diagonal) least = std::min(least, system.bandwidth_matrix[i]);
    }
    NetworkLevel& level = slow.levels.front();
    level.bytes_per_s = least;
    uplink = least * static_cast<double>(per_node);
    level.rails = static_cast<int>(std::min<std::int64_t>(per_node, 1 << 20));
  }
  if (!slow.levels.empty()) {
    slow.levels.front().unit_bytes_per_s = uplink;
    slow.levels.front().bytes_per_s = std::min(slow.levels.front().bytes_per_s, uplink);
    slow.levels.front().size = std::max(slow.levels.front().size, group.nodes);
  }
  return slow;
}

namespace {

/// What `alike(system)` gives where devices are alike, once those that no plan uses are left out
/// and groups that are equal joined; what `mixed(system)` gives where they are not then.
template <class Alike, class Mixed>
Outcome planned_by_kind(const Job& job, const System& system, const Alike& alike,
                        const Mixed& mixed) {
  if (is_homogeneous(system)) return alike(system);
  if (const auto usable = usable_groups(job, system)) {
    Outcome outcome = planned_by_kind(job, usable->system, alike, mixed);
    outcome.assumptions.push_back(usable->note);
    return outcome;
  }
  const System joined = with_equal_groups_joined(system);
  return is_homogeneous(joined) ? alike(joined) : mixed(joined);
}

}  // namespace

Outcome plan_by_kind(const PlannersByKind& planners, const Job& job, const System& system,
                     const SpaceOptions& space, const Budget& budget, const Progress& progress) {
  return planned_by_kind(
      job, system,
      [&](const System& alike) {
        return planners.homogeneous(job, alike, space, budget, progress);
      },
      [&](const System& joined) {
        if (planners.mixed_sharding == ShardingSource::manual) require_manual(job, joined);
        return planners.mixed(job, joined, space, budget, progress);
      });
}

namespace {

Outcome plan_joined_for_slowest(const NamedPlanner& planner, const Job& job, const System& joined,
                                const SpaceOptions& space, const Budget& budget,
                                const Progress& progress) {
  require_manual(job, joined);
  const LowerBound bound = lower_bound(job, joined);
  Outcome outcome = planner.plan(job, slowest_of(joined), space, budget, progress);
  outcome.physical_bound = bound;
  // What it proves is of other devices.
  outcome.search_bound_s = 0;
  if (outcome.status == Status::optimal) outcome.status = Status::feasible;
  MixedJob real(job, joined, planner.name);
  for (Candidate& candidate : outcome.candidates) {
    if (candidate.plan.parallel.vp > 1) {
      throw Error(
          "the " + planner.name + " planner interleaves stages, which a mixed cluster does not",
          "give --vp 1");
    }
    candidate.plan = real.on_real_devices(candidate.plan);
    candidate.metrics = measure(candidate.plan);
  }
  // A time by simulation is one of the real devices, too.
  if (!outcome.candidates.empty() && outcome.objective_name == "iteration time (simulated, s)") {
    outcome.objective = outcome.candidates.front().metrics.iteration_time_s;
  }
  outcome.assumptions.push_back(joined.name + ": the " + planner.name +
                                " planner takes every device and link for the slowest there is");
  return outcome;
}

}  // namespace

Outcome plan_for_slowest(const NamedPlanner& planner, const Job& job, const System& system,
                         const SpaceOptions& space, const Budget& budget,
                         const Progress& progress) {
  return planned_by_kind(
      job, system,
      [&](const System& alike) { return planner.plan(job, alike, space, budget, progress); },
      [&](const System& joined) {
        return plan_joined_for_slowest(planner, job, joined, space, budget, progress);
      });
}

}  // namespace braid
