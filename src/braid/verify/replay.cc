#include <algorithm>
#include <cassert>
#include <map>

#include <fmt/format.h>

#include "braid/schedule/schedule.h"
#include "braid/verify/checks.h"

namespace braid {
namespace {

/// More passes than any real job has; a replay of so many takes a second.
constexpr std::int64_t kMostPasses = 20'000'000;

struct Handover {
  std::size_t from = 0;
  double transfer_s = 0;
};

struct Part {
  double forward_s = 0, backward_s = 0;
  double stash_bytes = 0;  ///< On the device, per micro-batch.
  double offloaded_bytes = 0;
  std::vector<Handover> inputs;   ///< Parts whose forward pass comes first.
  std::vector<Handover> outputs;  ///< Parts whose backward pass comes first.
};

/// Parts in pipeline order: chunk · pp + stage.
std::vector<Part> parts_of(const Plan& plan) {
  const std::size_t pp = plan.stages.size();
  assert(pp > 0);
  std::vector<Part> parts(pp * static_cast<std::size_t>(plan.parallel.vp));
  std::vector<std::size_t> place(plan.profile.layers.size(), 0);
  for (std::size_t s = 0; s < pp; ++s) {
    for (std::size_t c = 0; c < plan.stages[s].chunks.size(); ++c) {
      const Chunk& chunk = plan.stages[s].chunks[c];
      Part& part = parts[c * pp + s];
      for (std::size_t i = 0; i < chunk.layers.size(); ++i) {
        const LayerCost& cost = option_at(plan, chunk, i).cost;
        const auto sum = [](const PassTime& pass) {
          return pass.compute_s + pass.tp_comm_s + pass.cp_comm_s + pass.ep_comm_s + pass.offload_s;
        };
        part.forward_s += sum(cost.forward);
        part.backward_s +=
            sum(cost.recompute) + sum(cost.backward_input) + sum(cost.backward_weight);
        part.stash_bytes += cost.stash_bytes - cost.offloaded_bytes;
        part.offloaded_bytes += cost.offloaded_bytes;
        place[static_cast<std::size_t>(chunk.layers[i])] = c * pp + s;
      }
    }
  }
  const Parallelism& p = plan.parallel;
  const double fastest = fastest_link_bytes_per_s(plan.system);
  std::map<std::pair<std::size_t, std::size_t>, double> bytes;
  for (const ProfileEdge& edge : plan.profile.edges) {
    const std::size_t from = place[static_cast<std::size_t>(edge.source)];
    const std::size_t to = place[static_cast<std::size_t>(edge.target)];
    if (from != to)
      bytes[{from, to}] += edge.bytes * p.micro_batch / p.cp / (p.sequence_parallel ? p.tp : 1);
  }
  for (const auto& [ends, size] : bytes) {
    const bool moves = ends.first % pp != ends.second % pp;
    const double transfer_s = moves && fastest > 0 ? size / fastest : 0;
    parts[ends.second].inputs.push_back({ends.first, transfer_s});
    parts[ends.first].outputs.push_back({ends.second, transfer_s});
  }
  return parts;
}

/// Stages on the longest way from each stage to an end of the stage graph.
std::vector<int> depths_of(const std::vector<Part>& parts) {
  std::vector<int> depths(parts.size(), 1);
  for (std::size_t s = parts.size(); s-- > 0;) {
    for (const Handover& next : parts[s].outputs) {
      depths[s] = std::max(depths[s], depths[next.from] + 1);
    }
  }
  return depths;
}

std::string refusal_of(const Plan& plan) {
  const Parallelism& p = plan.parallel;
  if (p.schedule == ScheduleKind::one_f_one_b && p.vp > 1) return "1F1B has one chunk per stage";
  if (p.schedule == ScheduleKind::interleaved && p.vp > 1 && p.num_micro_batches % p.pp != 0) {
    return fmt::format("interleaving needs micro-batches in groups of pp, {} is no multiple of {}",
                       p.num_micro_batches, p.pp);
  }
  std::int64_t passes = 2 * std::int64_t{p.pp};
  if (__builtin_mul_overflow(passes, std::int64_t{p.vp}, &passes) ||
      __builtin_mul_overflow(passes, p.num_micro_batches, &passes) || passes > kMostPasses) {
    return "too many passes to replay";
  }
  return "";
}

/// Ends of passes by part and micro-batch; negative: not yet run.
class Clock {
 public:
  Clock(std::size_t parts, std::int64_t micro_batches)
      : micro_batches_(static_cast<std::size_t>(micro_batches)),
        ends_(parts * micro_batches_, -1) {}
  double& at(std::size_t part, std::int64_t micro_batch) {
    return ends_[part * micro_batches_ + static_cast<std::size_t>(micro_batch)];
  }

 private:
  std::size_t micro_batches_;
  std::vector<double> ends_;
};

}  // namespace

Replay replay(const Plan& plan) {
  Replay result;
  result.fault = refusal_of(plan);
  if (!result.fault.empty()) return result;
  const Parallelism& p = plan.parallel;
  const std::vector<Part> parts = parts_of(plan);
  const std::size_t pp = plan.stages.size();
  const bool graph = p.vp == 1;
  const ScheduleKind kind =
      graph && p.schedule == ScheduleKind::interleaved ? ScheduleKind::one_f_one_b : p.schedule;
  const Schedule schedule = graph ? make_graph_schedule(kind, depths_of(parts), p.num_micro_batches)
                                  : make_schedule(kind, p.pp, p.vp, p.num_micro_batches);
  Clock forward(parts.size(), p.num_micro_batches);
  Clock backward(parts.size(), p.num_micro_batches);
  std::vector<std::size_t> next(pp, 0);
  std::vector<double> free_at(pp, 0);
  std::vector<double> work(pp, 0);
  std::vector<double> stash(pp, 0);
  std::vector<std::int64_t> held(pp, 0);
  std::vector<double> slot_bytes(pp, 0);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    slot_bytes[i % pp] = std::max(slot_bytes[i % pp], parts[i].offloaded_bytes);
  }
  result.peak_stash_bytes.assign(pp, 0);

  // Let every stage go on as far as it can, again and again, until none can.
  bool moved = true;
  while (moved) {
    moved = false;
    for (std::size_t s = 0; s < pp; ++s) {
      for (; next[s] < schedule.order[s].size(); ++next[s]) {
        const PassTask& task = schedule.order[s][next[s]];
        if (task.chunk < 0 || task.chunk >= p.vp || task.micro_batch < 0 ||
            task.micro_batch >= p.num_micro_batches) {
          result.fault = fmt::format("stage {} runs a pass that does not exist", s + 1);
          return result;
        }
        const std::size_t index = static_cast<std::size_t>(task.chunk) * pp + s;
        const Part& part = parts[index];
        const bool is_forward = task.kind == TaskKind::forward;
        Clock& clock = is_forward ? forward : backward;
        double start_s = free_at[s];
        bool ready = true;
        for (const Handover& before : is_forward ? part.inputs : part.outputs) {
          const double end_s = clock.at(before.from, task.micro_batch);
          ready = ready && end_s >= 0;
          start_s = std::max(start_s, end_s + before.transfer_s);
        }
        if (!is_forward) ready = ready && forward.at(index, task.micro_batch) >= 0;
        if (!ready) break;
        if (clock.at(index, task.micro_batch) >= 0) {
          result.fault =
              fmt::format("stage {} runs a pass of micro-batch {} twice", s + 1, task.micro_batch);
          return result;
        }
        const double duration_s = is_forward ? part.forward_s : part.backward_s;
        free_at[s] = start_s + duration_s;
        clock.at(index, task.micro_batch) = free_at[s];
        work[s] += duration_s;
        stash[s] += is_forward ? part.stash_bytes : -part.stash_bytes;
        held[s] += is_forward ? 1 : -1;
        // Up to two stashes on their way to the host still take room on the device.
        const double slots = static_cast<double>(std::min<std::int64_t>(held[s], 2));
        result.peak_stash_bytes[s] =
            std::max(result.peak_stash_bytes[s], stash[s] + slots * slot_bytes[s]);
        ++result.passes;
        moved = true;
      }
    }
  }
  const auto expected = static_cast<std::int64_t>(2 * parts.size()) * p.num_micro_batches;
  if (result.passes != expected) {
    result.fault = fmt::format("{} of {} passes can run, then every stage waits for another",
                               result.passes, expected);
    return result;
  }
  for (std::size_t s = 0; s < pp; ++s) {
    result.time_s = std::max(result.time_s, free_at[s]);
    result.busiest_stage_s = std::max(result.busiest_stage_s, work[s]);
    result.serial_s += work[s];
  }
  for (const Part& part : parts) {
    for (const Handover& before : part.inputs) {
      result.serial_s += 2 * before.transfer_s * static_cast<double>(p.num_micro_batches);
    }
  }
  return result;
}

double fastest_link_bytes_per_s(const System& system) {
  double fastest = 0;
  const auto consider = [&fastest](const NetworkLevel& level) {
    fastest = std::max({fastest, level.bytes_per_s, level.unit_bytes_per_s});
  };
  for (const DeviceGroup& group : system.groups) consider(group.intra_node);
  for (const NetworkLevel& level : system.levels) consider(level);
  for (const double bandwidth : system.bandwidth_matrix) fastest = std::max(fastest, bandwidth);
  return fastest;
}

const Chip& chip_of(const System& system, std::int64_t device) {
  std::int64_t end = 0;
  for (const DeviceGroup& group : system.groups) {
    end += group.nodes * group.devices_per_node;
    if (device < end) return group.chip;
  }
  return system.groups.back().chip;
}

}  // namespace braid
