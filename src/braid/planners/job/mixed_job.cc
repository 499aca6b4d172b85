#include "braid/planners/job/mixed_job.h"

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
  base_.profile.chip = chip_names_of(system);
  scratch_.emplace(base_, base_.planner);
}

std::vector<LayerCost> MixedJob::costs(const Configuration& config, std::size_t group, bool only) {
  const auto& kinds = tables_[group].at(config).kinds;
  std::vector<LayerCost> costs(kinds.begin(), kinds.end());
  if (only) count_shared_once(chain_.shared, chain_.kind_of_layer, to_execution(config), costs);
  return costs;
}

std::size_t MixedJob::slowest_group(const Configuration& config, std::int32_t kind,
                                    std::span<const std::size_t> groups) {
  return slowest_of(groups, [&](std::size_t group) -> const LayerCost& {
    return tables_[group].at(config).kinds[at(kind)];
  });
}

const std::vector<ChainLayer>& MixedJob::layers(const Configuration& config,
                                                std::span<const std::size_t> groups, bool only) {
  const auto [found, fresh] =
      layers_.try_emplace({run_key(config), only, {groups.begin(), groups.end()}});
  if (fresh) {
    std::vector<ChainLayer>& layers = found->second;
    layers.reserve(chain_.kind_of_layer.size());
    for (std::size_t l = 0; l < chain_.kind_of_layer.size(); ++l) {
      const std::size_t group = slowest_group(config, chain_.kind_of_layer[l], groups);
      layers.push_back(tables_[group].at(config).chain[l]);
    }
    if (only && !chain_.shared.empty()) {
      const std::vector<LayerCost> once = costs(config, groups.front(), true);
      for (std::size_t l = 0; l < layers.size(); ++l) {
        layers[l].dense_parameters = once[at(chain_.kind_of_layer[l])].dense_parameters;
      }
    }
  }
  return found->second;
}

std::int32_t MixedJob::option_of(const Configuration& config, std::size_t group, bool only,
                                 PlanBuilder& builder) {
  return builder.option(tables_[group], config, {static_cast<std::int32_t>(group), only},
                        [&] { return costs(config, group, only); });
}

/// A chunk of those layers, each by the option of the group where it is slowest.
void MixedJob::add_stage(const PlacedStage& placed, std::span<const LayerRun> layers, bool only,
                         PlanBuilder& builder) {
  const std::vector<std::size_t> groups = groups_of(system_, placed.devices);
  Chunk chunk;
  for (const LayerRun& layer : layers) {
    for (const std::size_t group : groups) option_of(layer.how, group, only, builder);
    const std::size_t group =
        slowest_group(layer.how, chain_.kind_of_layer[at(layer.layer)], groups);
    add_layers(std::span(&layer.layer, 1), option_of(layer.how, group, only, builder), chunk);
  }
  Stage& stage = builder.add_stage(placed.config, placed.devices);
  stage.own = stage_config(placed.config);
  stage.chunks.push_back(std::move(chunk));
}

void MixedJob::fill(std::span<const PlacedStage> stages, std::span<const std::int32_t> order,
                    PlanBuilder& builder) {
  Configuration first = stages.front().config;
  first.vp = 1;
  first.order = AxisOrder::pipeline_outermost;
  first.schedule = ScheduleKind::one_f_one_b;
  first.pp = static_cast<std::int32_t>(stages.size());
  first.num_micro_batches = job_.global_batch / (std::int64_t{first.dp} * first.micro_batch);
  builder.plan().parallel = to_parallelism(first);
  builder.plan().stages.clear();
  for (const PlacedStage& placed : stages) {
    runs_of_stage_.clear();
    for (std::int32_t place = placed.begin; place < placed.end; ++place) {
      runs_of_stage_.push_back({order.empty() ? place : order[at(place)], placed.config});
    }
    add_stage(placed, runs_of_stage_, stages.size() == 1, builder);
  }
}

Plan MixedJob::plan(std::span<const PlacedStage> stages, std::span<const std::int32_t> order) {
  PlanBuilder builder(base_, base_.planner);
  fill(stages, order, builder);
  return builder.take();
}

Plan MixedJob::on_real_devices(const Plan& planned) {
  PlanBuilder builder(base_, planned.planner);
  builder.plan().parallel = planned.parallel;
  for (std::size_t s = 0; s < planned.stages.size(); ++s) {
    const Stage& from = planned.stages[s];
    PlacedStage placed;
    placed.config = stage_configuration(form_of(planned, s));
    placed.devices = from.devices;
    std::vector<LayerRun> layers;
    for (const Chunk& chunk : from.chunks) {
      for (std::size_t i = 0; i < chunk.layers.size(); ++i) {
        const Option& option = options_of(planned.profile, chunk.layers[i])[at(chunk.options[i])];
        layers.push_back({chunk.layers[i], with_execution(placed.config, option.how)});
      }
    }
    add_stage(placed, layers, planned.stages.size() == 1, builder);
  }
  return builder.take();
}

double MixedJob::time_s(std::span<const PlacedStage> stages) {
  fill(stages, {}, *scratch_);
  return simulate_time_s(scratch_->plan());
}

double MixedJob::missing_bytes(std::span<const PlacedStage> stages,
                               std::span<const std::int32_t> order) {
  fill(stages, order, *scratch_);
  const Plan& plan = scratch_->plan();
  const std::vector<MemoryBreakdown> memory = memory_of_stages(plan);
  double missing = -kInfinity;
  for (std::size_t s = 0; s < memory.size(); ++s) {
    missing = std::max(missing, memory[s].device_total() - usable_bytes_of_stage(plan, s));
    for (const std::int64_t device : stages[s].devices) {
      const auto& host = chip_at(system_, device).host;
      missing = std::max(missing, memory[s].host - (host ? host->bytes : 0));
    }
  }
  return missing;
}

}  // namespace braid
