#include <algorithm>
#include <array>
#include <cassert>
#include <map>

#include <fmt/format.h>

#include "braid/schedule/schedule.h"
#include "braid/verify/checks.h"
#include "braid/verify/stage_work.h"

namespace braid {
namespace {

/// More passes than any real job has; a replay of so many takes a second.
constexpr std::int64_t kMostPasses = 5'000'000;

struct Handover {
  std::size_t part = 0;
  std::size_t link = 0;   ///< By source and target stage; any within a stage.
  double transfer_s = 0;  ///< 0 within a stage.
  bool moves = false;     ///< From one stage to another.
};

/// A chunk of a stage, and what it exchanges with others.
struct Part {
  PartWork work;
  std::vector<Handover> inputs;   ///< Gradients go there.
  std::vector<Handover> outputs;  ///< Activations go there.
};

/// Parts in pipeline order: chunk · pp + stage.
std::vector<Part> parts_of(const Plan& plan, const std::vector<StageWork>& stages) {
  const std::size_t pp = stages.size();
  assert(pp > 0);
  std::vector<Part> parts(pp * static_cast<std::size_t>(plan.parallel.vp));
  std::vector<std::size_t> place(plan.profile.layers.size(), 0);
  for (std::size_t s = 0; s < pp; ++s) {
    for (std::size_t c = 0; c < plan.stages[s].chunks.size(); ++c) {
      parts[c * pp + s].work = stages[s].parts[c];
      for (const std::int32_t layer : plan.stages[s].chunks[c].layers) {
        place[static_cast<std::size_t>(layer)] = c * pp + s;
      }
    }
  }
  const Parallelism& p = plan.parallel;
  std::map<std::pair<std::size_t, std::size_t>, double> bytes;
  for (const ProfileEdge& edge : plan.profile.edges) {
    const std::size_t from = place[static_cast<std::size_t>(edge.source)];
    const std::size_t to = place[static_cast<std::size_t>(edge.target)];
    if (from != to)
      bytes[{from, to}] += edge.bytes * p.micro_batch / p.cp / (p.sequence_parallel ? p.tp : 1);
  }
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> links;
  const auto link = [&links](std::size_t source, std::size_t target) {
    return links.try_emplace({source, target}, links.size()).first->second;
  };
  for (const auto& [ends, size] : bytes) {
    const auto [from, to] = ends;
    const std::size_t source = from % pp;
    const std::size_t target = to % pp;
    const bool moves = source != target;
    const double transfer_s = moves ? handover_s(plan, source, target, size) : 0;
    parts[from].outputs.push_back({to, link(source, target), transfer_s, moves});
    parts[to].inputs.push_back({from, link(target, source), transfer_s, moves});
  }
  return parts;
}

/// Stages on the longest way from each stage to an end of the stage graph.
std::vector<int> depths_of(const std::vector<Part>& parts) {
  std::vector<int> depths(parts.size(), 1);
  for (std::size_t s = parts.size(); s-- > 0;) {
    for (const Handover& next : parts[s].outputs) {
      depths[s] = std::max(depths[s], depths[next.part] + 1);
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

/// What a pass waits for: how many hand-overs have not come yet, and when the last one came.
struct Wait {
  std::int32_t missing = 0;
  double arrived_s = 0;
  bool ran = false;
};

/// The waits of all passes of one direction, by part and micro-batch.
class Waits {
 public:
  Waits(const std::vector<Part>& parts, bool forward, std::int64_t micro_batches)
      : micro_batches_(static_cast<std::size_t>(micro_batches)) {
    waits_.reserve(parts.size() * micro_batches_);
    for (const Part& part : parts) {
      Wait wait;
      // A backward pass also waits for its own forward pass.
      wait.missing =
          static_cast<std::int32_t>(forward ? part.inputs.size() : part.outputs.size() + 1);
      waits_.insert(waits_.end(), micro_batches_, wait);
    }
  }
  Wait& at(std::size_t part, std::int64_t micro_batch) {
    return waits_[part * micro_batches_ + static_cast<std::size_t>(micro_batch)];
  }
  void arrive(std::size_t part, std::int64_t micro_batch, double time_s) {
    Wait& wait = at(part, micro_batch);
    --wait.missing;
    wait.arrived_s = std::max(wait.arrived_s, time_s);
  }

 private:
  std::size_t micro_batches_;
  std::vector<Wait> waits_;
};

/// The device that stands for a stage.
struct Device {
  std::size_t next = 0;  ///< In its order of passes.
  double free_s = 0;
  double work_s = 0;
  double last_pass_s = 0;
  double stash_bytes = 0, slot_bytes = 0, offloaded_bytes = 0;
  std::int64_t held = 0;
};

class Replayer {
 public:
  explicit Replayer(const Plan& plan)
      : p_(plan.parallel),
        stages_(stages_of(plan)),
        parts_(parts_of(plan, stages_)),
        schedule_(schedule_of(plan.parallel, parts_)),
        forward_(parts_, true, p_.num_micro_batches),
        backward_(parts_, false, p_.num_micro_batches),
        devices_(stages_.size()) {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      double& slot_bytes = devices_[i % devices_.size()].slot_bytes;
      slot_bytes = std::max(slot_bytes, parts_[i].work.offloaded_bytes);
      for (const std::vector<Handover>* handovers : {&parts_[i].inputs, &parts_[i].outputs}) {
        for (const Handover& handover : *handovers) {
          if (link_free_s_.size() <= handover.link) link_free_s_.resize(handover.link + 1, 0);
        }
      }
    }
    result_.peak_stash_bytes.assign(devices_.size(), 0);
    result_.peak_offloaded_bytes.assign(devices_.size(), 0);
  }

  Replay run() {
    // Let every stage go on as far as it can, again and again, until none can.
    bool moved = true;
    while (moved && result_.fault.empty()) {
      moved = false;
      for (std::size_t s = 0; s < devices_.size(); ++s) {
        while (devices_[s].next < schedule_.order[s].size() && run_next_pass(s)) moved = true;
        if (!result_.fault.empty()) return std::move(result_);
      }
    }
    const auto expected = static_cast<std::int64_t>(2 * parts_.size()) * p_.num_micro_batches;
    if (result_.passes != expected) {
      result_.fault = fmt::format("{} of {} passes can run, then every stage waits for another",
                                  result_.passes, expected);
      return std::move(result_);
    }
    finish();
    return std::move(result_);
  }

 private:
  static std::vector<StageWork> stages_of(const Plan& plan) {
    std::vector<StageWork> stages;
    for (std::size_t s = 0; s < plan.stages.size(); ++s) stages.push_back(work_of_stage(plan, s));
    return stages;
  }
  static Schedule schedule_of(const Parallelism& p, const std::vector<Part>& parts) {
    if (p.vp > 1) return make_schedule(p.schedule, p.pp, p.vp, p.num_micro_batches);
    const bool interleaved = p.schedule == ScheduleKind::interleaved;
    return make_graph_schedule(interleaved ? ScheduleKind::one_f_one_b : p.schedule,
                               depths_of(parts), p.num_micro_batches);
  }

  /// False when the stage's next pass has to wait, or there is a fault.
  bool run_next_pass(std::size_t s) {
    Device& device = devices_[s];
    const PassTask& task = schedule_.order[s][device.next];
    if (task.chunk < 0 || task.chunk >= p_.vp || task.micro_batch < 0 ||
        task.micro_batch >= p_.num_micro_batches) {
      result_.fault = fmt::format("stage {} runs a pass that does not exist", s + 1);
      return false;
    }
    const std::size_t index = static_cast<std::size_t>(task.chunk) * devices_.size() + s;
    const bool forward = task.kind == TaskKind::forward;
    Wait& wait = (forward ? forward_ : backward_).at(index, task.micro_batch);
    if (wait.ran) {
      result_.fault =
          fmt::format("stage {} runs a pass of micro-batch {} twice", s + 1, task.micro_batch);
      return false;
    }
    if (wait.missing > 0) return false;
    wait.ran = true;
    run_pass(s, index, forward, task.micro_batch, std::max(device.free_s, wait.arrived_s));
    ++device.next;
    ++result_.passes;
    return true;
  }

  void run_pass(std::size_t s, std::size_t index, bool forward, std::int64_t micro_batch,
                double start_s) {
    Device& device = devices_[s];
    const Part& part = parts_[index];
    const double duration_s = forward ? part.work.forward_s : part.work.backward_s;
    // Only a stage's very first pass, a forward one, can come before its parameters do.
    const double end_s =
        device.next == 0
            ? end_of_waiting_work_s(start_s, duration_s, stages_[s].gather_s, stages_[s].buckets)
            : start_s + duration_s;
    device.free_s = end_s;
    device.work_s += duration_s;
    device.last_pass_s = duration_s;
    device.stash_bytes += forward ? part.work.stash_bytes : -part.work.stash_bytes;
    device.offloaded_bytes += forward ? part.work.offloaded_bytes : -part.work.offloaded_bytes;
    result_.peak_offloaded_bytes[s] =
        std::max(result_.peak_offloaded_bytes[s], device.offloaded_bytes);
    device.held += forward ? 1 : -1;
    // Up to two stashes on their way to the host still take room on the device.
    const double slots = static_cast<double>(std::min<std::int64_t>(device.held, 2));
    double& peak = result_.peak_stash_bytes[s];
    peak = std::max(peak, device.stash_bytes + slots * device.slot_bytes);
    if (forward) backward_.arrive(index, micro_batch, end_s);
    for (const Handover& handover : forward ? part.outputs : part.inputs) {
      double arrived_s = end_s;
      if (handover.moves) {
        double& free_s = link_free_s_[handover.link];
        free_s = arrived_s = std::max(free_s, end_s) + handover.transfer_s;
      }
      (forward ? forward_ : backward_).arrive(handover.part, micro_batch, arrived_s);
    }
  }

  void finish() {
    for (std::size_t s = 0; s < devices_.size(); ++s) {
      const StageWork& stage = stages_[s];
      const Device& device = devices_[s];
      const double tail_s =
          outlasting_s(stage.reduce_s, device.last_pass_s, stage.buckets) + stage.optimizer_s;
      result_.time_s = std::max(result_.time_s, device.free_s + tail_s);
      result_.busiest_stage_s = std::max(result_.busiest_stage_s, device.work_s);
      result_.serial_s += device.work_s + stage.gather_s + stage.reduce_s + stage.optimizer_s;
    }
    for (const Part& part : parts_) {
      for (const Handover& before : part.inputs) {
        result_.serial_s += 2 * before.transfer_s * static_cast<double>(p_.num_micro_batches);
      }
    }
  }

  const Parallelism& p_;
  const std::vector<StageWork> stages_;
  const std::vector<Part> parts_;
  const Schedule schedule_;
  Waits forward_, backward_;
  std::vector<Device> devices_;
  std::vector<double> link_free_s_;
  Replay result_;
};

}  // namespace

Replay replay(const Plan& plan) {
  Replay result;
  result.fault = refusal_of(plan);
  if (!result.fault.empty()) return result;
  return Replayer(plan).run();
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
