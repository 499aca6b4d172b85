#include "braid/planners/profile_plan.h"

#include <algorithm>
#include <map>
#include <utility>

#include "braid/base/index.h"
#include "braid/planners/job/job_layers.h"
#include "braid/planners/piper/from_profile.h"
#include "braid/planners/piper/network.h"
#include "braid/profile/listed_layers.h"

namespace braid {
namespace {

Plan begin_plan(const ProfileTarget& target, std::int64_t micro_batches) {
  Job job;
  job.model_source = target.source;
  job.precision = target.precision;
  job.global_batch = micro_batches * target.micro_batch;
  Plan plan = blank_plan(job, ListedLayers(*target.profile), *target.system);
  plan.planner = target.planner;
  if (plan.model.empty()) plan.model = target.source;
  return plan;
}

/// Index of an option among a kind's, adding it where it is new.
std::int32_t place_of(const Option& option, std::vector<Option>& options) {
  const auto known = std::find(options.begin(), options.end(), option);
  const auto place = static_cast<std::int32_t>(known - options.begin());
  if (known == options.end()) options.push_back(option);
  return place;
}

/// The options that a piper problem has of a layer's degree, in its order.
std::vector<const Option*> options_of_degree(const ProfileTarget& target, std::int32_t layer,
                                             int tp) {
  std::vector<const Option*> options;
  for (const Option& option : options_of(*target.profile, layer)) {
    if (option.how.tp == tp && piper_can_use(option, target.micro_batch)) {
      options.push_back(&option);
    }
  }
  return options;
}

/// Lets stages share the plan's form where they have the same and lie where an order of axes puts
/// them; gives each its own otherwise.
void settle_forms(const std::vector<StageConfig>& forms, const std::vector<Recompute>& recomputes,
                  bool one_recompute, Plan& plan) {
  Parallelism& parallel = plan.parallel;
  const Stage& first = plan.stages.front();
  parallel.pp = static_cast<int>(plan.stages.size());
  parallel.tp = first.tp;
  parallel.dp = first.dp;
  parallel.micro_batch = forms.front().micro_batch;
  parallel.num_micro_batches = plan.global_batch / (std::int64_t{first.dp} * parallel.micro_batch);
  parallel.sequence_parallel = forms.front().sequence_parallel;
  parallel.recompute = recomputes.front();
  bool uniform = one_recompute;
  std::vector<std::vector<std::int64_t>> devices;
  for (std::size_t s = 0; s < forms.size(); ++s) {
    const Stage& stage = plan.stages[s];
    uniform = uniform && stage.dp == first.dp && stage.tp == first.tp &&
              forms[s] == forms.front() && recomputes[s] == recomputes.front();
    devices.push_back(stage.devices);
  }
  if (uniform) {
    if (const auto order = order_of_axes(parallel, devices)) {
      parallel.order = *order;
      return;
    }
  }
  for (std::size_t s = 0; s < forms.size(); ++s) plan.stages[s].own = forms[s];
}

std::string not_dividing(const char* what, std::size_t stage, std::int64_t dp,
                         std::int64_t micro_batches) {
  return std::string(what) + (stage > 0 ? " of stage " + std::to_string(stage) : "") + ", " +
         std::to_string(dp) + ", do not divide the " + std::to_string(micro_batches) +
         " micro-batches of a batch, and a plan's do";
}

/// Bytes that a layer reads along its edges from layers outside `inside` (all: from anywhere).
double entering_bytes(const PhazeProblem& problem, const PhazeWidth& width, std::int32_t layer,
                      const std::vector<bool>& inside) {
  double bytes = 0;
  for (std::size_t e = 0; e < problem.edges.size(); ++e) {
    if (problem.edges[e].second != layer) continue;
    if (!inside.empty() && inside[at(problem.edges[e].first)]) continue;
    bytes += width.edge_bytes[e];
  }
  return bytes;
}

Option plain_option(const PhazeProblem& problem, const PhazeWidth& width, std::size_t layer) {
  const PhazeLayer& from = width.layers[layer];
  Option option;
  option.name = "stash";
  option.how.tp = width.tp;
  option.cost.forward.compute_s = from.forward_s;
  option.cost.backward_input.compute_s = from.backward_s;
  option.cost.stash_bytes = from.activation_bytes;
  option.cost.gradient_bytes = from.weight_bytes;
  option.cost.fixed_bytes = problem.held_bytes(from);
  return option;
}

/// The same with its forward pass repeated, `input_bytes` being kept for that.
Option repeating_option(Option option, double input_bytes) {
  option.name = "recompute";
  option.how.recompute = Recompute::full;
  option.cost.recompute = option.cost.forward;
  option.cost.fixed_bytes += option.cost.stash_bytes;
  option.cost.stash_bytes = input_bytes;
  return option;
}

}  // namespace

ProfilePlan plan_of_solution(const ProfileTarget& target, const PiperProblem& problem,
                             const PiperSolution& solution) {
  ProfilePlan made;
  for (std::size_t s = 0; s < solution.stages.size(); ++s) {
    if (problem.micro_batches % solution.stages[s].dp == 0) continue;
    made.reason = not_dividing("the replicas", s + 1, solution.stages[s].dp, problem.micro_batches);
    return made;
  }
  Plan plan = begin_plan(target, problem.micro_batches);
  const std::vector<std::vector<std::int64_t>> devices =
      devices_of_stages(solution, problem.levels);
  std::vector<StageConfig> forms;
  std::vector<Recompute> recomputes;
  bool one_recompute = true, mixed = false;
  for (std::size_t s = 0; s < solution.stages.size(); ++s) {
    const PiperStage& from = solution.stages[s];
    std::vector<const Option*> options;
    std::size_t sharded = 0;  // Over the sequence.
    for (std::size_t i = 0; i < from.nodes.size(); ++i) {
      options.push_back(options_of_degree(target, from.nodes[i], from.tp)[at(from.options[i])]);
      sharded += options.back()->how.sequence_parallel ? 1 : 0;
      one_recompute =
          one_recompute && options.back()->how.recompute == options.front()->how.recompute;
    }
    StageConfig form;
    form.micro_batch = target.micro_batch;
    form.sequence_parallel = sharded == options.size();
    mixed = mixed || (sharded > 0 && sharded < options.size());
    Stage& stage = plan.stages.emplace_back();
    stage.dp = static_cast<int>(from.dp);
    stage.tp = from.tp;
    stage.devices = devices[s];
    Chunk& chunk = stage.chunks.emplace_back();
    for (std::size_t i = 0; i < from.nodes.size(); ++i) {
      Option option = *options[i];
      option.how.sequence_parallel = form.sequence_parallel;
      option.cost = with_stated_memory(option.cost, target.precision);
      const auto kind = at(plan.profile.layers[at(from.nodes[i])].kind);
      chunk.layers.push_back(from.nodes[i]);
      chunk.options.push_back(place_of(option, plan.profile.kinds[kind]));
    }
    forms.push_back(form);
    recomputes.push_back(options.front()->how.recompute);
  }
  settle_forms(forms, recomputes, one_recompute, plan);
  if (mixed) {
    made.assumptions.emplace_back(
        "stages mix layers with and without sequence parallelism, as Piper's rules let them: they "
        "hand over whole tensors");
  }
  made.plan = std::move(plan);
  return made;
}

ProfilePlan plan_of_placement(const ProfileTarget& target, const PhazeProblem& problem,
                              const PhazePlacement& placement) {
  ProfilePlan made;
  std::int64_t pipeline_devices = 0;
  for (std::size_t s = 0; s < placement.stages.size(); ++s) {
    if (placement.stages[s].branches > 1) {
      made.reason = "stage " + std::to_string(s + 1) +
                    " runs branches on devices of their own, which a plan's stages do not";
      return made;
    }
    pipeline_devices += placement.stages[s].devices;
  }
  if (problem.micro_batches % placement.dp != 0) {
    made.reason = not_dividing("the pipelines", 0, placement.dp, problem.micro_batches);
    return made;
  }
  const auto width = std::find_if(problem.widths.begin(), problem.widths.end(),
                                  [&](const PhazeWidth& w) { return w.tp == placement.tp; });
  Plan plan = begin_plan(target, problem.micro_batches);
  plan.profile.edges.clear();
  plan.profile.kinds.clear();
  plan.profile.layers.clear();
  for (std::size_t e = 0; e < problem.edges.size(); ++e) {
    plan.profile.edges.push_back({problem.edges[e].first, problem.edges[e].second,
                                  width->edge_bytes[e] / target.micro_batch});
  }
  for (const std::string& name : problem.names) plan.profile.layers.push_back({name, -1});
  std::vector<StageConfig> forms;
  std::vector<Recompute> recomputes;
  std::int64_t first_device = 0;
  for (std::size_t s = 0; s < placement.stages.size(); ++s) {
    const PhazeStage& from = placement.stages[s];
    const bool repeats = problem.recompute && s + 1 < placement.stages.size();
    std::vector<bool> inside(problem.names.size(), false);
    for (const std::int32_t layer : from.layers) inside[at(layer)] = true;
    Stage& stage = plan.stages.emplace_back();
    stage.dp = static_cast<int>(placement.dp);
    stage.tp = placement.tp;
    for (std::int64_t replica = 0; replica < placement.dp; ++replica) {
      for (std::int64_t d = 0; d < from.devices; ++d) {
        stage.devices.push_back(replica * pipeline_devices + first_device + d);
      }
    }
    first_device += from.devices;
    Chunk& chunk = stage.chunks.emplace_back();
    for (const std::int32_t layer : from.layers) {
      Option option = plain_option(problem, *width, at(layer));
      option.how.micro_batch = target.micro_batch;
      if (repeats) {
        const double bytes = entering_bytes(problem, *width, layer, inside);
        option = repeating_option(std::move(option), bytes);
        // The pass that is repeated has its inputs already.
        option.cost.fixed_bytes = std::max(0.0, option.cost.fixed_bytes - bytes);
      }
      chunk.layers.push_back(layer);
      chunk.options.push_back(0);
      const std::vector<Option> only = {option};
      const auto kind = std::find(plan.profile.kinds.begin(), plan.profile.kinds.end(), only);
      plan.profile.layers[at(layer)].kind =
          static_cast<std::int32_t>(kind - plan.profile.kinds.begin());
      if (kind == plan.profile.kinds.end()) plan.profile.kinds.push_back(only);
    }
    StageConfig form;
    form.micro_batch = target.micro_batch;
    forms.push_back(form);
    recomputes.push_back(repeats ? Recompute::full : Recompute::none);
  }
  settle_forms(forms, recomputes, true, plan);
  made.plan = std::move(plan);
  return made;
}

Profile profile_of_phaze(const PhazeProblem& problem) {
  Profile profile;
  profile.provenance = "file";
  std::vector<double> least_bytes = problem.widths.front().edge_bytes;
  for (const PhazeWidth& width : problem.widths) {
    for (std::size_t e = 0; e < least_bytes.size(); ++e) {
      least_bytes[e] = std::min(least_bytes[e], width.edge_bytes[e]);
    }
  }
  for (std::size_t e = 0; e < problem.edges.size(); ++e) {
    profile.edges.push_back({problem.edges[e].first, problem.edges[e].second, least_bytes[e]});
  }
  for (std::size_t l = 0; l < problem.names.size(); ++l) {
    std::vector<Option> options;
    for (const PhazeWidth& width : problem.widths) {
      Option plain = plain_option(problem, width, l);
      for (std::size_t e = 0; e < problem.edges.size(); ++e) {
        const double more_bytes = width.edge_bytes[e] - least_bytes[e];
        const bool enters = problem.edges[e].second == static_cast<std::int32_t>(l);
        const bool leaves = problem.edges[e].first == static_cast<std::int32_t>(l);
        if (more_bytes <= 0 || (!enters && !leaves)) continue;
        plain.edge_syncs.push_back(
            {static_cast<std::int32_t>(e), enters ? more_bytes : 0, leaves ? more_bytes : 0});
      }
      const double input_bytes = entering_bytes(problem, width, static_cast<std::int32_t>(l), {});
      options.push_back(plain);
      options.push_back(repeating_option(std::move(plain), input_bytes));
    }
    const auto known = std::find(profile.kinds.begin(), profile.kinds.end(), options);
    profile.layers.push_back(
        {problem.names[l], static_cast<std::int32_t>(known - profile.kinds.begin())});
    if (known == profile.kinds.end()) profile.kinds.push_back(std::move(options));
  }
  return profile;
}

}  // namespace braid
