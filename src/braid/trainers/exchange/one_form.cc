#include "braid/trainers/exchange/one_form.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/index.h"
#include "braid/plan/stage_context.h"
#include "braid/plan/stage_rounds.h"
#include "braid/system/part.h"

namespace braid {
namespace {

/// Throws that the plan has something that the trainer cannot be told.
[[noreturn]] void refuse(const Plan& plan, const std::string& target, const std::string& what) {
  throw Error(fmt::format("{}, which {} cannot be told", what, target),
              is_homogeneous(plan.system)
                  ? "plan with --planner braid, whose stages share their degrees"
                  : "fix the degrees of all stages, such as --tp 2 --dp 4, or plan for devices of "
                    "one kind");
}

/// What the options of a stage's layers say; throws where they differ.
void take_options(const Plan& plan, std::size_t stage, Parallelism& form,
                  const std::string& target) {
  bool first = true;
  for (const Chunk& chunk : plan.stages[stage].chunks) {
    for (std::size_t i = 0; i < chunk.layers.size(); ++i) {
      const Execution& how = options_of(plan.profile, chunk.layers[i])[at(chunk.options[i])].how;
      if (!first && (how.recompute != form.recompute || how.whole_experts != form.whole_experts ||
                     how.offload_activations != form.offload_activations)) {
        refuse(plan, target,
               fmt::format("the layers of stage {} differ in recomputation, offload or experts",
                           stage + 1));
      }
      first = false;
      form.recompute = how.recompute;
      form.whole_experts = how.whole_experts;
      form.offload_activations = how.offload_activations;
    }
  }
}

/// The form of one stage as a plan's, but for the number of stages.
Parallelism whole_form(const Plan& plan, std::size_t stage, const std::string& target) {
  Parallelism form = form_of(plan, stage);
  take_options(plan, stage, form, target);
  return form;
}

/// The form that all stages share; the pipeline axis is outermost.
Parallelism shared_form(const Plan& plan, const std::string& target) {
  Parallelism shared = whole_form(plan, 0, target);
  for (std::size_t s = 1; s < plan.stages.size(); ++s) {
    if (whole_form(plan, s, target) != shared) {
      refuse(plan, target,
             fmt::format("stages 1 and {} differ in degrees, micro-batch, ZeRO, recomputation or "
                         "offload",
                         s + 1));
    }
  }
  shared.pp = static_cast<int>(plan.stages.size());
  shared.vp = 1;
  std::erase(shared.order, Axis::pp);
  shared.order.push_back(Axis::pp);
  return shared;
}

void check_chain(const Plan& plan, const std::string& target) {
  std::int32_t next = 0;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const Stage& stage = plan.stages[s];
    if (stage.own && !stage.own->passes.empty()) {
      refuse(plan, target, fmt::format("stage {} has an order of passes of its own", s + 1));
    }
    for (const std::int32_t layer : stage.chunks.front().layers) {
      if (layer != next++) {
        refuse(plan, target,
               fmt::format("stage {} does not hold consecutive layers from the one before it on",
                           s + 1));
      }
    }
  }
}

/// The plan with the warm-ups of 1F1B. Throws where these take more memory than there is.
Plan with_usual_warm_ups(const Plan& plan, const std::string& target, SharedConfig& made) {
  Plan usual = plan;
  for (Stage& stage : usual.stages) {
    if (stage.own) stage.own->warm_up.reset();
  }
  const std::vector<std::int64_t> before = forwards_first(plan);
  const std::vector<std::int64_t> now = forwards_first(usual);
  if (before == now) return usual;
  const std::vector<MemoryBreakdown> memory = memory_of_stages(usual);
  for (std::size_t s = 0; s < now.size(); ++s) {
    if (before[s] == now[s]) continue;
    if (memory[s].device_total() > usable_bytes_of_stage(usual, s)) {
      refuse(plan, target,
             fmt::format("stage {} holds {} micro-batches at most, fewer than 1F1B would", s + 1,
                         before[s]));
    }
    made.notes.push_back(
        fmt::format("stage {} begins with {} forward passes, as 1F1B does, where the plan has {}: "
                    "its time is another",
                    s + 1, now[s], before[s]));
  }
  return usual;
}

struct Node {
  std::int64_t group = 0, first_device = 0, devices = 0;
};

/// All nodes, by their first device.
std::vector<Node> nodes_of(const System& system) {
  std::vector<Node> nodes;
  for (const DeviceRun& run : device_runs(system)) {
    const std::int64_t end = run.first + run.count;
    for (std::int64_t device = run.first; device < end; device += run.devices_per_node) {
      nodes.push_back({static_cast<std::int64_t>(run.group), device,
                       std::min(run.devices_per_node, end - device)});
    }
  }
  return nodes;
}

/// The nodes in the order in which `ranks`, the device of each rank, fill them; empty where they do
/// not. The last may be filled in part.
std::vector<Node> filled_nodes(const System& system, const std::vector<std::int64_t>& ranks) {
  std::vector<Node> filled;
  const std::vector<Node> nodes = nodes_of(system);
  for (std::size_t r = 0; r < ranks.size();) {
    const auto node = std::lower_bound(
        nodes.begin(), nodes.end(), ranks[r],
        [](const Node& each, std::int64_t device) { return each.first_device < device; });
    if (node == nodes.end() || node->first_device != ranks[r]) return {};
    filled.push_back(*node);
    std::int64_t taken = 0;
    for (; taken < node->devices && r < ranks.size(); ++taken, ++r) {
      if (ranks[r] != node->first_device + taken) return {};
    }
  }
  return filled;
}

/// The system with these nodes alone, in their order; `group_of[g]` is where group g is now.
System renumbered(const System& system, const std::vector<Node>& nodes,
                  const std::vector<std::int64_t>& ranks, std::vector<std::int32_t>& group_of) {
  System now = system;
  now.groups.clear();
  group_of.assign(system.groups.size(), -1);
  std::int64_t before = -1;
  for (const Node& node : nodes) {
    if (node.group != before) {
      now.groups.push_back(system.groups[at(node.group)]);
      now.groups.back().nodes = 0;
      std::int32_t& place = group_of[at(node.group)];
      if (place < 0) place = static_cast<std::int32_t>(now.groups.size()) - 1;
    }
    ++now.groups.back().nodes;
    before = node.group;
  }
  now.device_count = static_cast<std::int64_t>(ranks.size());
  if (!system.bandwidth_matrix.empty()) {
    now.bandwidth_matrix.clear();
    for (const std::int64_t from : ranks) {
      for (const std::int64_t to : ranks) {
        now.bandwidth_matrix.push_back(
            system.bandwidth_matrix[at(from * system.device_count + to)]);
      }
    }
  }
  return now;
}

/// Gives each stage the devices that its ranks are, and the system the nodes in this order.
void number_by_ranks(const std::string& target, SharedConfig& made) {
  Plan& plan = made.plan;
  std::vector<std::int64_t> ranks;
  for (const Stage& stage : plan.stages) {
    ranks.insert(ranks.end(), stage.devices.begin(), stage.devices.end());
  }
  const std::vector<Node> nodes = filled_nodes(plan.system, ranks);
  if (nodes.empty()) {
    refuse(plan, target, "the stages do not fill the computers one after the other");
  }
  std::string order;
  bool as_before = true;
  std::int64_t rank = 0;
  for (Stage& stage : plan.stages) {
    const auto size = static_cast<std::int64_t>(stage.devices.size());
    as_before = as_before && stage.devices.front() == rank;
    order += fmt::format("{}ranks {} to {} on devices {} to {}", order.empty() ? "" : ", ", rank,
                         rank + size - 1, stage.devices.front(), stage.devices.back());
    std::iota(stage.devices.begin(), stage.devices.end(), rank);
    rank += size;
  }
  std::vector<std::int32_t> group_of;
  plan.system = renumbered(plan.system, nodes, ranks, group_of);
  for (std::vector<Option>& options : plan.profile.kinds) {
    for (Option& option : options) {
      if (option.device_group >= 0) option.device_group = group_of[at(option.device_group)];
    }
  }
  if (!as_before)
    made.notes.push_back("the computers are started in the order of stages: " + order);
}

}  // namespace

SharedConfig in_one_form(const Plan& plan, const std::string& target) {
  if (is_uniform(plan)) return {plan, {}};
  SharedConfig made;
  const Parallelism form = shared_form(plan, target);
  check_chain(plan, target);
  made.plan = with_usual_warm_ups(plan, target, made);
  number_by_ranks(target, made);
  made.plan.parallel = form;
  for (Stage& stage : made.plan.stages) stage.own.reset();
  return made;
}

}  // namespace braid
