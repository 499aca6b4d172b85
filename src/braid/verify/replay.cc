#include <algorithm>
#include <array>
#include <cassert>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/infinity.h"
#include "braid/schedule/schedule.h"
#include "braid/verify/checks.h"
#include "braid/verify/stage_work.h"

namespace braid {
namespace {

/// More passes than any real job has; a replay of so many takes a second.
constexpr std::int64_t kMostPasses = 5'000'000;

/// One way of a hand-over, as seen from the part whose passes start it.
struct Handover {
  std::size_t part = 0;
  std::size_t link = 0;   ///< By source and target stage; any within a stage.
  double transfer_s = 0;  ///< 0 within a stage.
  bool moves = false;     ///< From one stage to another.
  std::size_t sent = 0;   ///< Number of the log of what this part sends.
  std::size_t got = 0;    ///< And of what comes back.
};

/// A chunk of a stage, and what it exchanges with others.
struct Part {
  PartWork work;
  std::int64_t samples = 1;  ///< Of one micro-batch on all replicas.
  std::int64_t micro_batches = 1;
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
    const Parallelism form = form_of(plan, s);
    for (std::size_t c = 0; c < plan.stages[s].chunks.size(); ++c) {
      Part& part = parts[c * pp + s];
      part.work = stages[s].parts[c];
      part.samples = std::int64_t{form.dp} * form.micro_batch;
      part.micro_batches = form.num_micro_batches;
      for (const std::int32_t layer : plan.stages[s].chunks[c].layers) {
        place[static_cast<std::size_t>(layer)] = c * pp + s;
      }
    }
  }
  struct Bytes {
    double forward = 0, backward = 0;
  };
  std::map<std::pair<std::size_t, std::size_t>, Bytes> bytes;
  for (const ProfileEdge& edge : plan.profile.edges) {
    const std::size_t from = place[static_cast<std::size_t>(edge.source)];
    const std::size_t to = place[static_cast<std::size_t>(edge.target)];
    if (from == to) continue;
    Bytes& sum = bytes[{from, to}];
    sum.forward += bytes_of_flow(edge.bytes, form_of(plan, from % pp), form_of(plan, to % pp));
    sum.backward += bytes_of_flow(edge.bytes, form_of(plan, to % pp), form_of(plan, from % pp));
  }
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> links;
  const auto link = [&links](std::size_t source, std::size_t target) {
    return links.try_emplace({source, target}, links.size()).first->second;
  };
  std::size_t logs = 0;
  for (const auto& [ends, size] : bytes) {
    const auto [from, to] = ends;
    const std::size_t source = from % pp;
    const std::size_t target = to % pp;
    const bool moves = source != target;
    const double there_s = moves ? pass_handover_s(plan, source, target, size.forward) : 0;
    const double back_s = moves ? pass_handover_s(plan, target, source, size.backward) : 0;
    parts[from].outputs.push_back({to, link(source, target), there_s, moves, logs, logs + 1});
    parts[to].inputs.push_back({from, link(target, source), back_s, moves, logs + 1, logs});
    logs += 2;
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

/// Forward passes that come first in a graph of stages with rounds of their own
/// (docs/timeline.md), or as many as a stage says. Parts are in an order that no hand-over goes
/// against.
std::vector<std::int64_t> warm_ups(const Plan& plan, const std::vector<Part>& parts) {
  std::vector<std::int64_t> ahead(parts.size(), 0);
  for (std::size_t s = 0; s < parts.size(); ++s) {
    const std::int64_t g = parts[s].samples;
    for (const Handover& from : parts[s].inputs) {
      const std::int64_t h = parts[from.part].samples;
      ahead[s] = std::max(ahead[s], ahead[from.part] + h - std::gcd(g, h));
    }
  }
  std::vector<std::int64_t> path(parts.size(), 0);
  std::vector<std::int64_t> lag(parts.size(), 0);
  std::vector<std::int64_t> first(parts.size(), 0);
  for (std::size_t s = parts.size(); s-- > 0;) {
    const std::int64_t g = parts[s].samples;
    for (const Handover& next : parts[s].outputs) {
      const std::int64_t h = parts[next.part].samples;
      path[s] = std::max(path[s], path[next.part]);
      lag[s] = std::max(lag[s], lag[next.part] + h - std::gcd(g, h));
    }
    path[s] += g;
    std::int64_t rounds = path[s] / g + (path[s] % g > 0 ? 1 : 0);
    while (ahead[s] + rounds * g <= lag[s]) ++rounds;
    lag[s] = std::max(lag[s], ahead[s] + (rounds - 1) * g);
    first[s] = std::min(rounds, parts[s].micro_batches);
    if (plan.parallel.schedule == ScheduleKind::gpipe) first[s] = parts[s].micro_batches;
    const std::optional<StageConfig>& own = plan.stages[s].own;
    if (own && own->warm_up) first[s] = *own->warm_up;
  }
  return first;
}

/// Puts the passes that a stage lists, if it does, in place of the schedule's.
void list_own_passes(const Stage& stage, std::int32_t number, std::vector<Work>& order) {
  if (!stage.own || stage.own->passes.empty()) return;
  order.clear();
  std::array<std::int64_t, 2> next = {0, 0};
  for (const PassRun& run : stage.own->passes) {
    for (std::int64_t pass = 0; pass < run.times * (run.forwards + run.backwards); ++pass) {
      const bool forward = pass % (run.forwards + run.backwards) < run.forwards;
      order.push_back(
          {forward ? WorkKind::forward : WorkKind::backward, number, next[forward ? 0 : 1]++});
    }
  }
}

std::string refusal_of(const Plan& plan) {
  const Parallelism& p = plan.parallel;
  if (p.schedule == ScheduleKind::one_f_one_b && p.vp > 1) return "1F1B has one chunk per stage";
  if (p.schedule == ScheduleKind::interleaved && p.vp > 1 && p.num_micro_batches % p.pp != 0) {
    return fmt::format("interleaving needs micro-batches in groups of pp, {} is no multiple of {}",
                       p.num_micro_batches, p.pp);
  }
  std::int64_t passes = 0;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    std::int64_t of_stage = 0;
    if (__builtin_mul_overflow(2 * std::int64_t{p.vp}, form_of(plan, s).num_micro_batches,
                               &of_stage) ||
        __builtin_add_overflow(passes, of_stage, &passes) || passes > kMostPasses) {
      throw Error(
          fmt::format("the stages run more than the {} passes that can be checked", kMostPasses),
          "use larger micro-batches, or fewer of them");
    }
  }
  return "";
}

/// Passes of one part.
struct Progress {
  std::vector<bool> forward_ran, backward_ran;  ///< By micro-batch.
};

/// The device that stands for a stage.
struct Device {
  std::size_t next = 0;  ///< In its order of passes.
  double free_s = 0;
  double work_s = 0;
  double stash_bytes = 0, slot_bytes = 0, offloaded_bytes = 0;
  std::int64_t held = 0;
};

class Replayer {
  static constexpr double kNever = kInfinity;

 public:
  explicit Replayer(const Plan& plan)
      : p_(plan.parallel),
        does_(plan.trainer.does),
        stages_(stages_of(plan)),
        parts_(parts_of(plan, stages_)),
        order_(order_of(plan, parts_)),
        progress_(parts_.size()),
        devices_(stages_.size()) {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const auto micro_batches = static_cast<std::size_t>(parts_[i].micro_batches);
      progress_[i].forward_ran.assign(micro_batches, false);
      progress_[i].backward_ran.assign(micro_batches, false);
      expected_passes_ += 2 * parts_[i].micro_batches;
      double& slot_bytes = devices_[i % devices_.size()].slot_bytes;
      slot_bytes = std::max(slot_bytes, parts_[i].work.offloaded_bytes);
      for (const std::vector<Handover>* handovers : {&parts_[i].inputs, &parts_[i].outputs}) {
        for (const Handover& handover : *handovers) {
          if (link_free_s_.size() <= handover.link) link_free_s_.resize(handover.link + 1, 0);
          if (arrived_s_.size() <= handover.sent) arrived_s_.resize(handover.sent + 1);
          arrived_s_[handover.sent].assign(micro_batches, kNever);
        }
      }
    }
    if (does_.blocking_sends && p_.vp == 1) stop_for_sends();
    result_.peak_stash_bytes.assign(devices_.size(), 0);
    result_.peak_offloaded_bytes.assign(devices_.size(), 0);
  }

  Replay run() {
    // Let every stage go on as far as it can, again and again, until none can.
    bool moved = true;
    while (moved && result_.fault.empty()) {
      moved = false;
      for (std::size_t s = 0; s < devices_.size(); ++s) {
        while (devices_[s].next < order_.devices[s].size() && run_next_pass(s)) moved = true;
        if (!result_.fault.empty()) return std::move(result_);
      }
    }
    if (result_.passes != expected_passes_) {
      result_.fault = stuck_fault();
      return std::move(result_);
    }
    finish();
    return std::move(result_);
  }

 private:
  static std::vector<StageWork> stages_of(const Plan& plan) {
    std::vector<StageWork> stages;
    for (std::size_t s = 0; s < plan.stages.size(); ++s) stages.push_back(work_of_stage(plan, s));
    const std::vector<double> shared_s = shared_sums_s(plan);
    for (std::size_t s = 0; s < stages.size(); ++s) stages[s].shared_s = shared_s[s];
    return stages;
  }
  static WorkOrder order_of(const Plan& plan, const std::vector<Part>& parts) {
    const Parallelism& p = plan.parallel;
    if (!is_uniform(plan)) {
      std::vector<StageRounds> rounds;
      rounds.reserve(parts.size());
      for (const Part& part : parts) rounds.push_back({part.samples, part.micro_batches});
      WorkOrder order = make_graph_schedule(p.schedule, rounds, warm_ups(plan, parts));
      for (std::size_t s = 0; s < parts.size(); ++s) {
        list_own_passes(plan.stages[s], static_cast<std::int32_t>(s), order.devices[s]);
      }
      return order;
    }
    if (p.vp > 1) return make_schedule(p.schedule, p.pp, p.vp, p.num_micro_batches);
    const bool interleaved = p.schedule == ScheduleKind::interleaved;
    return make_graph_schedule(interleaved ? ScheduleKind::one_f_one_b : p.schedule,
                               depths_of(parts), p.num_micro_batches);
  }

  /// Passes end when what they send is there, in place of the hand-overs.
  void stop_for_sends() {
    for (std::size_t s = 0; s < parts_.size(); ++s) {
      for (const bool forward : {true, false}) {
        double& pass_s = forward ? parts_[s].work.forward_s : parts_[s].work.backward_s;
        for (Handover& handover : forward ? parts_[s].outputs : parts_[s].inputs) {
          pass_s += handover.transfer_s;
          handover.transfer_s = 0;
        }
      }
      stages_[s].parts.front().backward_s = parts_[s].work.backward_s;
    }
  }

  std::string stuck_fault() const {
    for (std::size_t s = 0; s < devices_.size(); ++s) {
      if (devices_[s].next >= order_.devices[s].size()) continue;
      const Work& pass = order_.devices[s][devices_[s].next];
      return fmt::format(
          "stage {} waits for ever before the {} pass of micro-batch {}; {} of {} passes can run",
          s + 1, pass.kind == WorkKind::forward ? "forward" : "backward", pass.index,
          result_.passes, expected_passes_);
    }
    return fmt::format("{} of {} passes are in the order", result_.passes, expected_passes_);
  }

  /// False when the stage's next pass has to wait, or there is a fault.
  bool run_next_pass(std::size_t s) {
    Device& device = devices_[s];
    const Work& pass = order_.devices[s][device.next];
    const std::int64_t chunk = pass.stage - static_cast<std::int64_t>(s) * p_.vp;
    const std::size_t index = static_cast<std::size_t>(chunk) * devices_.size() + s;
    if (chunk < 0 || chunk >= p_.vp || pass.index < 0 ||
        pass.index >= parts_[index].micro_batches) {
      result_.fault = fmt::format("stage {} runs a pass that does not exist", s + 1);
      return false;
    }
    const bool forward = pass.kind == WorkKind::forward;
    const auto k = static_cast<std::size_t>(pass.index);
    Progress& progress = progress_[index];
    if ((forward ? progress.forward_ran : progress.backward_ran)[k]) {
      result_.fault =
          fmt::format("stage {} runs a pass of micro-batch {} twice", s + 1, pass.index);
      return false;
    }
    // A backward pass also waits for its own forward pass, earlier on the same device.
    const double ready_s = inputs_ready_s(parts_[index], forward, pass.index);
    if (ready_s == kNever || (!forward && !progress.forward_ran[k])) return false;
    (forward ? progress.forward_ran : progress.backward_ran)[k] = true;
    run_pass(s, index, forward, pass.index, std::max(device.free_s, ready_s));
    ++device.next;
    ++result_.passes;
    return true;
  }

  /// When the last part of what a pass needs is there; kNever when some is not.
  double inputs_ready_s(const Part& part, bool forward, std::int64_t micro_batch) const {
    double ready_s = 0;
    const std::int64_t first_sample = micro_batch * part.samples;
    const std::int64_t last_sample = first_sample + part.samples - 1;
    for (const Handover& from : forward ? part.inputs : part.outputs) {
      const std::int64_t samples = parts_[from.part].samples;
      for (std::int64_t k = first_sample / samples; k <= last_sample / samples; ++k) {
        ready_s = std::max(ready_s, arrived_s_[from.got][static_cast<std::size_t>(k)]);
      }
    }
    return ready_s;
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
    device.stash_bytes += forward ? part.work.stash_bytes : -part.work.stash_bytes;
    device.offloaded_bytes += forward ? part.work.offloaded_bytes : -part.work.offloaded_bytes;
    result_.peak_offloaded_bytes[s] =
        std::max(result_.peak_offloaded_bytes[s], device.offloaded_bytes);
    device.held += forward ? 1 : -1;
    // Up to two stashes on their way to the host still take room on the device.
    const double slots = static_cast<double>(std::min<std::int64_t>(device.held, 2));
    double& peak = result_.peak_stash_bytes[s];
    peak = std::max(peak, device.stash_bytes + slots * device.slot_bytes);
    for (const Handover& handover : forward ? part.outputs : part.inputs) {
      double arrived_s = end_s;
      if (handover.moves) {
        double& free_s = link_free_s_[handover.link];
        free_s = arrived_s = std::max(free_s, end_s) + handover.transfer_s;
      }
      arrived_s_[handover.sent][static_cast<std::size_t>(micro_batch)] = arrived_s;
    }
  }

  void finish() {
    for (std::size_t s = 0; s < devices_.size(); ++s) {
      const StageWork& stage = stages_[s];
      const Device& device = devices_[s];
      const std::int64_t in_a_row =
          p_.schedule == ScheduleKind::gpipe ? p_.num_micro_batches : p_.pp;
      const double late_s =
          does_.overlapped_gradients ? late_gradients_s(stage, in_a_row) : stage.reduce_s;
      const double tail_s = late_s + stage.shared_s + stage.optimizer_s;
      result_.time_s = std::max(result_.time_s, device.free_s + tail_s);
      result_.busiest_stage_s = std::max(result_.busiest_stage_s, device.work_s);
      result_.serial_s +=
          device.work_s + stage.gather_s + stage.reduce_s + stage.shared_s + stage.optimizer_s;
    }
    for (const Part& part : parts_) {
      for (const std::vector<Handover>* ways : {&part.inputs, &part.outputs}) {
        for (const Handover& way : *ways) {
          result_.serial_s += way.transfer_s * static_cast<double>(part.micro_batches);
        }
      }
    }
  }

  const Parallelism& p_;
  const TrainerBehaviour& does_;
  std::vector<StageWork> stages_;
  std::vector<Part> parts_;
  const WorkOrder order_;
  std::vector<Progress> progress_;
  std::vector<Device> devices_;
  std::vector<double> link_free_s_;
  std::vector<std::vector<double>> arrived_s_;  ///< [log][micro-batch of the sender]
  std::int64_t expected_passes_ = 0;
  Replay result_;
};

}  // namespace

Replay replay(const Plan& plan) {
  Replay result;
  result.fault = refusal_of(plan);
  if (!result.fault.empty()) return result;
  return Replayer(plan).run();
}

}  // namespace braid
