#include "braid/planners/job/plan_builder.h"

#include <utility>

#include "braid/base/index.h"

namespace braid {

RunKey run_key(const Configuration& how) {
  return {how.tp,
          how.cp,
          how.ep,
          how.micro_batch,
          how.sequence_parallel,
          how.whole_experts,
          how.sharding,
          how.recompute,
          how.offload_activations,
          how.offload_weights};
}

StageConfig stage_config(const Configuration& how) {
  return {how.micro_batch,     how.ep, how.sequence_parallel, how.zero, how.offload_optimizer,
          how.offload_weights, {}};
}

PlanBuilder::PlanBuilder(Plan blank, std::string planner) : plan_(std::move(blank)) {
  plan_.planner = std::move(planner);
}

std::int32_t PlanBuilder::option(LayerTables& tables, const Configuration& how) {
  return option(tables, how, -1);
}

std::int32_t PlanBuilder::option(LayerTables& tables, const Configuration& how,
                                 std::int32_t group) {
  return option(tables, how, Site{group, false},
                [&]() -> std::span<const LayerCost> { return tables.sums_at(how).kinds; });
}

std::int32_t PlanBuilder::add(LayerTables& tables, const Configuration& how, Site site,
                              std::span<const LayerCost> costs) {
  for (std::size_t kind = 0; kind < costs.size(); ++kind) {
    Option option = tables.option(how, kind);
    option.cost = costs[kind];
    option.cost.weight_shapes = 0;  // Numbers of the search's own.
    if (site.group >= 0) {
      option.name += " on " + plan_.system.groups[at(site.group)].chip.name;
      option.device_group = site.group;
    }
    plan_.profile.kinds[kind].push_back(std::move(option));
  }
  return options_++;
}

Stage& PlanBuilder::add_stage(const Configuration& how, std::vector<std::int64_t> devices) {
  Stage& stage = plan_.stages.emplace_back();
  stage.dp = how.dp;
  stage.tp = how.tp;
  stage.cp = how.cp;
  stage.devices = std::move(devices);
  return stage;
}

void add_layers(std::span<const std::int32_t> layers, std::int32_t option, Chunk& chunk) {
  chunk.layers.insert(chunk.layers.end(), layers.begin(), layers.end());
  chunk.options.resize(chunk.layers.size(), option);
}

}  // namespace braid
