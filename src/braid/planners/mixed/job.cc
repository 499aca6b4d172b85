#include "braid/planners/mixed/job.h"

#include <algorithm>
#include <utility>

#include "braid/base/index.h"
#include "braid/base/infinity.h"
#include "braid/plan/stage_context.h"
#include "braid/planners/job/job_layers.h"
#include "braid/profile/layer_profile.h"
#include "braid/schedule/timeline.h"
#include "braid/system/links.h"

namespace braid {

MixedJob::MixedJob(const Job& job, const System& system, std::string planner)
    : job_(job), system_(system), chain_(chain_job(job, system)), runs_(device_runs(system)) {
  parts_.reserve(system.groups.size());
  for (std::size_t g = 0; g < system.groups.size(); ++g) parts_.push_back(group_of(system, g));
  tables_.reserve(parts_.size());
  for (const System& part : parts_) {
    tables_.emplace_back(job, part, LayerTables::Stages::unknown);
  }

  base_ = blank_plan(job, *chain_.layers, system);
  base_.planner = std::move(planner);
  std::string chips;
  for (const DeviceGroup& group : system.groups) {
    if (chips.find(group.chip.name) != std::string::npos) continue;
    chips += (chips.empty() ? "" : " + ") + group.chip.name;
  }
  base_.profile.chip = chips;
  scratch_ = base_;
}

std::vector<std::size_t> MixedJob::groups_of(std::span<const std::int64_t> devices) const {
  std::vector<std::size_t> groups;
  for (const std::int64_t device : devices) {
    const std::size_t group = placement_of(system_, device).group;
    if (groups.empty() || groups.back() != group) groups.push_back(group);
  }
  std::sort(groups.begin(), groups.end());
  groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
  return groups;
}

MixedJob::FormKey MixedJob::key_of(const Configuration& form, bool only) {
  return {form.tp,
          form.cp,
          form.ep,
          form.micro_batch,
          form.sequence_parallel,
          form.sharding,
          form.recompute,
          form.offload_activations,
          form.offload_weights,
          only};
}

std::vector<LayerCost> MixedJob::costs(const Configuration& form, std::size_t group, bool only) {
  const auto& kinds = tables_[group].at(form).kinds;
  std::vector<LayerCost> costs(kinds.begin(), kinds.end());
  if (only) count_shared_once(chain_.shared, chain_.kind_of_layer, to_execution(form), costs);
  return costs;
}

std::size_t MixedJob::slowest_group(const Configuration& form, std::int32_t kind,
                                    std::span<const std::size_t> groups) {
  std::size_t slowest = groups.front();
  double most_s = -1;
  for (const std::size_t group : groups) {
    const LayerCost& cost = tables_[group].at(form).kinds[at(kind)];
    const double time_s = cost.forward.total_s() + cost.backward_s();
    if (time_s <= most_s) continue;
    most_s = time_s;
    slowest = group;
  }
  return slowest;
}

const std::vector<ChainLayer>& MixedJob::layers(const Configuration& form,
                                                std::span<const std::size_t> groups, bool only) {
  const auto [found, fresh] =
      layers_.try_emplace({key_of(form, only), {groups.begin(), groups.end()}});
  if (fresh) {
    std::vector<ChainLayer>& layers = found->second;
    layers.reserve(chain_.kind_of_layer.size());
    for (std::size_t l = 0; l < chain_.kind_of_layer.size(); ++l) {
      const std::size_t group = slowest_group(form, chain_.kind_of_layer[l], groups);
      layers.push_back(tables_[group].at(form).chain[l]);
    }
    if (only && !chain_.shared.empty()) {
      const std::vector<LayerCost> once = costs(form, groups.front(), true);
      for (std::size_t l = 0; l < layers.size(); ++l) {
        layers[l].dense_parameters = once[at(chain_.kind_of_layer[l])].dense_parameters;
      }
    }
  }
  return found->second;
}

std::int32_t MixedJob::option_of(const Configuration& form, std::size_t group, bool only,
                                 Plan& plan) {
  auto& known = options_[&plan];
  const auto next = static_cast<std::int32_t>(plan.profile.kinds.front().size());
  const auto [found, fresh] = known.try_emplace({key_of(form, only), group}, next);
  if (!fresh) return found->second;
  const std::vector<LayerCost> of_kind = costs(form, group, only);
  for (std::size_t kind = 0; kind < plan.profile.kinds.size(); ++kind) {
    Option option = tables_[group].option(form, kind);
    option.name += " on " + system_.groups[group].chip.name;
    option.cost = of_kind[kind];
    option.device_group = static_cast<std::int32_t>(group);
    plan.profile.kinds[kind].push_back(std::move(option));
  }
  return next;
}

void MixedJob::fill(std::span<const PlacedStage> stages, std::span<const std::int32_t> order,
                    Plan& plan) {
  plan.parallel = {};
  plan.parallel.pp = static_cast<int>(stages.size());
  const Configuration& first = stages.front().form;
  plan.parallel.tp = first.tp;
  plan.parallel.cp = first.cp;
  plan.parallel.dp = first.dp;
  plan.parallel.ep = first.ep;
  plan.parallel.micro_batch = first.micro_batch;
  plan.parallel.num_micro_batches =
      job_.global_batch / (std::int64_t{first.dp} * first.micro_batch);
  plan.parallel.sequence_parallel = first.sequence_parallel;
  plan.parallel.recompute = first.recompute;
  plan.parallel.zero = first.zero;
  plan.parallel.offload_optimizer = first.offload_optimizer;
  plan.parallel.offload_weights = first.offload_weights;
  plan.parallel.offload_activations = first.offload_activations;
  plan.stages.clear();
  const bool only = stages.size() == 1;
  for (const PlacedStage& placed : stages) {
    const Configuration& form = placed.form;
    Stage stage;
    stage.dp = form.dp;
    stage.tp = form.tp;
    stage.cp = form.cp;
    stage.devices = placed.devices;
    stage.own = StageForm{
        form.micro_batch,     form.ep, form.sequence_parallel, form.zero, form.offload_optimizer,
        form.offload_weights, {}};
    const std::vector<std::size_t> groups = groups_of(placed.devices);
    for (const std::size_t group : groups) option_of(form, group, only, plan);
    Chunk chunk;
    for (std::int32_t place = placed.begin; place < placed.end; ++place) {
      const std::int32_t l = order.empty() ? place : order[at(place)];
      chunk.layers.push_back(l);
      const std::size_t group = slowest_group(form, chain_.kind_of_layer[at(l)], groups);
      chunk.options.push_back(option_of(form, group, only, plan));
    }
    stage.chunks.push_back(std::move(chunk));
    plan.stages.push_back(std::move(stage));
  }
}

Plan MixedJob::plan(std::span<const PlacedStage> stages, std::span<const std::int32_t> order) {
  Plan plan = base_;
  fill(stages, order, plan);
  options_.erase(&plan);
  return plan;
}

Plan MixedJob::on_real_devices(const Plan& planned) {
  Plan plan = base_;
  plan.planner = planned.planner;
  plan.parallel = planned.parallel;
  plan.stages = planned.stages;
  const bool only = plan.stages.size() == 1;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    Stage& stage = plan.stages[s];
    const Parallelism form = form_of(planned, s);
    stage.dp = form.dp;
    stage.tp = form.tp;
    stage.cp = form.cp;
    stage.own = StageForm{
        form.micro_batch,     form.ep, form.sequence_parallel, form.zero, form.offload_optimizer,
        form.offload_weights, {}};
    const std::vector<std::size_t> groups = groups_of(stage.devices);
    for (Chunk& chunk : stage.chunks) {
      for (std::size_t i = 0; i < chunk.layers.size(); ++i) {
        const Execution& how =
            options_of(planned.profile, chunk.layers[i])[at(chunk.options[i])].how;
        Configuration run;
        run.dp = form.dp;
        run.tp = how.tp;
        run.cp = how.cp;
        run.ep = how.ep;
        run.micro_batch = how.micro_batch;
        run.sequence_parallel = how.sequence_parallel;
        run.recompute = how.recompute;
        run.offload_activations = how.offload_activations;
        run.offload_weights = how.offload_weights;
        for (const std::size_t group : groups) option_of(run, group, only, plan);
        const std::size_t group =
            slowest_group(run, chain_.kind_of_layer[at(chunk.layers[i])], groups);
        chunk.options[i] = option_of(run, group, only, plan);
      }
    }
  }
  options_.erase(&plan);
  return plan;
}

double MixedJob::time_s(std::span<const PlacedStage> stages) {
  fill(stages, {}, scratch_);
  return simulate_time_s(scratch_);
}

double MixedJob::missing_bytes(std::span<const PlacedStage> stages,
                               std::span<const std::int32_t> order) {
  fill(stages, order, scratch_);
  const std::vector<MemoryBreakdown> memory = memory_of_stages(scratch_);
  double missing = -kInfinity;
  for (std::size_t s = 0; s < memory.size(); ++s) {
    missing = std::max(missing, memory[s].device_total() - usable_bytes_of_stage(scratch_, s));
    for (const std::int64_t device : stages[s].devices) {
      const auto& host = chip_at(system_, device).host;
      missing = std::max(missing, memory[s].host - (host ? host->bytes : 0));
    }
  }
  return missing;
}

}  // namespace braid
