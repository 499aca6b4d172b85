#include "braid/verify/verify.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "braid/schedule/schedule.h"

namespace braid {
namespace {

const Option& option_at(const Plan& plan, const Chunk& chunk, std::size_t i) {
  return options_of(plan.profile, chunk.layers[i])[static_cast<std::size_t>(chunk.options[i])];
}

Check coverage(const Plan& plan) {
  std::vector<int> times(plan.profile.layers.size(), 0);
  for (const Stage& stage : plan.stages) {
    for (const Chunk& chunk : stage.chunks) {
      for (const std::int32_t layer : chunk.layers) ++times[static_cast<std::size_t>(layer)];
    }
  }
  for (std::size_t l = 0; l < times.size(); ++l) {
    if (times[l] != 1) {
      return {"coverage", false,
              fmt::format("layer {} is run {} times", plan.profile.layers[l].name, times[l])};
    }
  }
  return {"coverage", true, fmt::format("{} layers, each once", times.size())};
}

/// Chunks in model order (all stages' first chunks, then all second ones …) never hand back.
Check order(const Plan& plan) {
  std::vector<std::int64_t> position(plan.profile.layers.size(), -1);
  const auto stages = static_cast<std::int64_t>(plan.stages.size());
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    for (std::size_t c = 0; c < plan.stages[s].chunks.size(); ++c) {
      const Chunk& chunk = plan.stages[s].chunks[c];
      if (chunk.layers.empty()) {
        return {"order", false, fmt::format("stage {} has a chunk without layers", s)};
      }
      for (const std::int32_t layer : chunk.layers) {
        position[static_cast<std::size_t>(layer)] =
            static_cast<std::int64_t>(c) * stages + static_cast<std::int64_t>(s);
      }
    }
  }
  for (const ProfileEdge& edge : plan.profile.edges) {
    const auto source = static_cast<std::size_t>(edge.source);
    const auto target = static_cast<std::size_t>(edge.target);
    if (position[source] > position[target]) {
      return {"order", false,
              fmt::format("layer {} is run before {}, which it needs",
                          plan.profile.layers[target].name, plan.profile.layers[source].name)};
    }
  }
  return {"order", true, fmt::format("{} edges lead forward", plan.profile.edges.size())};
}

Check options(const Plan& plan) {
  const Parallelism& p = plan.parallel;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    for (const Chunk& chunk : plan.stages[s].chunks) {
      for (std::size_t i = 0; i < chunk.layers.size(); ++i) {
        const Execution& how = option_at(plan, chunk, i).how;
        if (how.tp != p.tp || how.cp != p.cp || how.ep != p.ep ||
            how.micro_batch != p.micro_batch || how.recompute != p.recompute ||
            how.sequence_parallel != p.sequence_parallel) {
          return {"options", false,
                  fmt::format("stage {}: the option of layer {} is not for this parallel form", s,
                              plan.profile.layers[static_cast<std::size_t>(chunk.layers[i])].name)};
        }
      }
    }
  }
  return {"options", true, "all layers run as the parallel form says"};
}

Check devices(const Plan& plan) {
  std::set<std::int64_t> used;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const Stage& stage = plan.stages[s];
    const std::int64_t expected = std::int64_t{1} * stage.dp * stage.tp * stage.cp;
    if (static_cast<std::int64_t>(stage.devices.size()) != expected) {
      return {"devices", false,
              fmt::format("stage {} has {} devices for dp·tp·cp = {}", s, stage.devices.size(),
                          expected)};
    }
    if (stage.dp != plan.parallel.dp || stage.tp != plan.parallel.tp ||
        stage.cp != plan.parallel.cp) {
      return {"devices", false, fmt::format("stage {}'s degrees are not the plan's", s)};
    }
    for (const std::int64_t device : stage.devices) {
      if (device < 0 || device >= plan.system.device_count || !used.insert(device).second) {
        return {"devices", false,
                fmt::format("stage {}: device {} is used twice or does not exist", s, device)};
      }
    }
  }
  return {"devices", true,
          fmt::format("{} of {} devices, each once", used.size(), plan.system.device_count)};
}

Check batch(const Plan& plan) {
  const Parallelism& p = plan.parallel;
  const double samples =
      static_cast<double>(p.dp) * p.micro_batch * static_cast<double>(p.num_micro_batches);
  const std::string detail =
      fmt::format("dp {} · micro-batch {} · {} micro-batches = {} of {} samples", p.dp,
                  p.micro_batch, p.num_micro_batches, samples, plan.global_batch);
  return {"batch", samples == static_cast<double>(plan.global_batch), detail};
}

/// Bytes on a device of a stage with `in_flight` chunk stashes, summed layer by layer.
double stage_bytes(const Plan& plan, const Stage& stage, double in_flight) {
  const Parallelism& p = plan.parallel;
  const double dense_ranks = static_cast<double>(p.dp) * p.cp;
  const double expert_ranks = dense_ranks / p.ep;
  double state = 0;
  double largest_stash = 0;
  double largest_stay = 0;
  double largest_working = 0;
  double largest_layer = 0;
  const double w = bytes_per_element(plan.precision.weight);
  const double g = bytes_per_element(plan.precision.gradient);
  const double o = p.offload_optimizer ? 0 : plan.precision.optimizer_bytes_per_parameter;
  const auto per_parameter = [&](double ranks) {
    const double weights = p.offload_weights ? 0 : p.zero == Zero::parameters ? w / ranks : w;
    const double gradients = p.zero >= Zero::gradients ? g / ranks : g;
    return weights + gradients + (p.zero >= Zero::optimizer ? o / ranks : o);
  };
  for (const Chunk& chunk : stage.chunks) {
    double stash = 0;
    double moved = 0;
    for (std::size_t i = 0; i < chunk.layers.size(); ++i) {
      const Option& option = option_at(plan, chunk, i);
      const LayerCost& cost = option.cost;
      state += cost.dense_parameters * per_parameter(dense_ranks) +
               cost.expert_parameters * per_parameter(expert_ranks) +
               std::max(0.0, option.fixed_bytes);
      stash += cost.stash_bytes;
      moved += cost.offloaded_bytes;
      largest_working = std::max(largest_working, cost.working_bytes);
      largest_layer = std::max(largest_layer, cost.dense_parameters + cost.expert_parameters);
    }
    largest_stash = std::max(largest_stash, moved);
    largest_stay = std::max(largest_stay, stash);
  }
  double gathered = 0;
  if (p.zero == Zero::parameters) gathered += 2 * w;
  if (p.offload_weights) gathered += 2 * w;
  if (p.zero >= Zero::gradients) gathered += g;
  return state + largest_working + gathered * largest_layer +
         in_flight * (largest_stay - largest_stash) + std::min(in_flight, 2.0) * largest_stash;
}

/// Most chunk stashes that a device holds when it runs its passes in this order.
std::int64_t most_in_flight(const std::vector<PassTask>& passes) {
  std::int64_t held = 0;
  std::int64_t most = 0;
  for (const PassTask& pass : passes) {
    held += pass.kind == TaskKind::forward ? 1 : -1;
    most = std::max(most, held);
  }
  return most;
}

Check memory(const Plan& plan, const Schedule& schedule) {
  double fullest = 0;
  double room = 0;
  std::size_t fullest_stage = 0;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const Chip& chip = plan.system.groups.front().chip;
    const double bytes =
        stage_bytes(plan, plan.stages[s], static_cast<double>(most_in_flight(schedule.order[s])));
    if (s == 0 || bytes > fullest) {
      fullest = bytes;
      fullest_stage = s;
      room = chip.memory.bytes - chip.reserved_bytes;
    }
  }
  // The same sums in another order may differ in the last bits.
  const bool fits = fullest <= room * (1 + 1e-12);
  return {"memory", fits,
          fmt::format("stage {} needs {:.0f} of {:.0f} bytes", fullest_stage, fullest, room)};
}

/// Each pass once, and nothing waits for what can never come: replays the orders step by step.
Check causality(const Plan& plan, const Schedule& schedule) {
  const std::int64_t m = plan.parallel.num_micro_batches;
  const int vp = plan.parallel.vp;
  // Chunks that must run before (forward) or after (backward) each chunk.
  std::map<std::pair<std::size_t, std::int32_t>, std::set<std::pair<std::size_t, std::int32_t>>>
      sources;
  std::vector<std::pair<std::size_t, std::int32_t>> place(plan.profile.layers.size());
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    for (std::size_t c = 0; c < plan.stages[s].chunks.size(); ++c) {
      for (const std::int32_t layer : plan.stages[s].chunks[c].layers) {
        place[static_cast<std::size_t>(layer)] = {s, static_cast<std::int32_t>(c)};
      }
    }
  }
  std::map<std::pair<std::size_t, std::int32_t>, std::set<std::pair<std::size_t, std::int32_t>>>
      targets;
  for (const ProfileEdge& edge : plan.profile.edges) {
    const auto from = place[static_cast<std::size_t>(edge.source)];
    const auto to = place[static_cast<std::size_t>(edge.target)];
    if (from == to) continue;
    sources[to].insert(from);
    targets[from].insert(to);
  }
  // One flag per pass: [kind][stage][chunk][micro-batch].
  std::vector<bool> done(plan.stages.size() * static_cast<std::size_t>(2 * vp * m));
  const auto flag = [&](bool forward, std::size_t stage, std::int32_t chunk, std::int64_t mb) {
    const std::size_t row = (forward ? 0 : plan.stages.size()) + stage;
    return (row * static_cast<std::size_t>(vp) + static_cast<std::size_t>(chunk)) *
               static_cast<std::size_t>(m) +
           static_cast<std::size_t>(mb);
  };
  std::vector<std::size_t> next(plan.stages.size(), 0);
  std::size_t total = 0;
  for (const auto& passes : schedule.order) total += passes.size();
  if (total != plan.stages.size() * static_cast<std::size_t>(2 * vp * m)) {
    return {"schedule", false, "the schedule does not have every pass once"};
  }
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t s = 0; s < schedule.order.size(); ++s) {
      while (next[s] < schedule.order[s].size()) {
        const PassTask& pass = schedule.order[s][next[s]];
        const bool forward = pass.kind == TaskKind::forward;
        const std::pair<std::size_t, std::int32_t> here{s, pass.chunk};
        const auto& needs = forward ? sources[here] : targets[here];
        bool ready = forward || done[flag(true, s, pass.chunk, pass.micro_batch)];
        for (const auto& [stage, chunk] : needs) {
          ready = ready && done[flag(forward, stage, chunk, pass.micro_batch)];
        }
        if (!ready) break;
        const std::size_t mine = flag(forward, s, pass.chunk, pass.micro_batch);
        if (done[mine]) {
          return {"schedule", false, fmt::format("stage {} runs a pass twice", s)};
        }
        done[mine] = true;
        ++next[s];
        moved = true;
      }
    }
  }
  for (std::size_t s = 0; s < next.size(); ++s) {
    if (next[s] < schedule.order[s].size()) {
      return {"schedule", false,
              fmt::format("stage {} waits for ever at pass {} of {}", s, next[s],
                          schedule.order[s].size())};
    }
  }
  return {"schedule", true, fmt::format("{} passes, none waits for ever", total)};
}

/// Serial work of one device of each stage, and of all stages one after another.
struct Work {
  double busiest_s = 0;
  double model_flops = 0;
};
Work work_of(const Plan& plan) {
  Work work;
  for (const Stage& stage : plan.stages) {
    double busy_s = 0;
    for (const Chunk& chunk : stage.chunks) {
      for (std::size_t i = 0; i < chunk.layers.size(); ++i) {
        const LayerCost& cost = option_at(plan, chunk, i).cost;
        busy_s += cost.forward.total_s() + cost.backward_s();
        work.model_flops += cost.model_flops * static_cast<double>(stage.devices.size());
      }
    }
    work.busiest_s = std::max(work.busiest_s, busy_s);
  }
  const auto m = static_cast<double>(plan.parallel.num_micro_batches);
  work.busiest_s *= m;
  work.model_flops *= m;
  return work;
}

}  // namespace

bool Verification::holds() const {
  return std::all_of(checks.begin(), checks.end(), [](const Check& check) { return check.holds; });
}

Verification verify(const Plan& plan, double iteration_time_s) {
  Verification result;
  result.iteration_time_s = iteration_time_s;
  result.checks = {coverage(plan), devices(plan), batch(plan)};
  if (!result.holds()) return result;
  result.checks.push_back(order(plan));
  result.checks.push_back(options(plan));
  if (!result.holds()) return result;
  const Parallelism& p = plan.parallel;
  if (p.schedule == ScheduleKind::interleaved && p.num_micro_batches % p.pp != 0) {
    result.checks.push_back({"schedule", false,
                             fmt::format("interleaving needs pp {} to divide {} micro-batches",
                                         p.pp, p.num_micro_batches)});
    return result;
  }
  const Schedule schedule = make_schedule(p.schedule, p.pp, p.vp, p.num_micro_batches);
  result.checks.push_back(causality(plan, schedule));
  result.checks.push_back(memory(plan, schedule));

  const Work work = work_of(plan);
  result.checks.push_back({"time", iteration_time_s >= work.busiest_s * (1 - 1e-9),
                           fmt::format("{:.6g} s, the busiest stage works {:.6g} s",
                                       iteration_time_s, work.busiest_s)});
  double peak = 0;
  for (const PeakRate& rate : plan.system.groups.front().chip.peaks) {
    if (rate.dtype == plan.precision.matmul) peak = rate.matmul_flops_per_s;
  }
  if (peak > 0) {
    result.lower_bound_s =
        work.model_flops / (peak * static_cast<double>(plan.system.device_count));
    result.checks.push_back({"bound", iteration_time_s >= result.lower_bound_s * (1 - 1e-9),
                             fmt::format("{:.6g} s, all arithmetic at peak takes {:.6g} s",
                                         iteration_time_s, result.lower_bound_s)});
  }
  return result;
}

}  // namespace braid
