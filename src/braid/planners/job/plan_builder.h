#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "braid/plan/plan.h"
#include "braid/planners/job/layer_table.h"

namespace braid {

/// What of a configuration tells how layers run: its options' and their costs' key.
using RunKey = std::tuple<int, int, int, int, bool, bool, ShardingKind, Recompute, bool, bool>;
RunKey run_key(const Configuration& how);

/// What stages with these degrees and trades say of themselves, where they have a form of their
/// own.
StageConfig stage_config(const Configuration& how);

/// Puts the plan of a job together, stage by stage. Its options are those that stages use, at the
/// same place in the list of every kind of layer.
///
///   PlanBuilder builder(blank_plan(job, layers, system), "braid");
///   const std::int32_t option = builder.option(tables, how);
///   add_layers(layers, option, builder.add_stage(how, devices).chunks.emplace_back());
class PlanBuilder {
 public:
  /// Where layers run, if their costs depend on it.
  struct Site {
    std::int32_t group = -1;  ///< Of devices; its chip is named in the option.
    bool only = false;        ///< In the only stage of a pipeline.
  };

  PlanBuilder(Plan blank, std::string planner);

  Plan& plan() { return plan_; }
  Plan take() { return std::move(plan_); }

  /// The place of the options of layers that run so; new ones cost what `tables` say.
  std::int32_t option(LayerTables& tables, const Configuration& how);
  std::int32_t option(LayerTables& tables, const Configuration& how, std::int32_t group);
  /// As above; new ones cost `costs()`, by kind of layer.
  template <typename Costs>
  std::int32_t option(LayerTables& tables, const Configuration& how, Site site, const Costs& costs);
  std::int32_t options() const { return options_; }

  /// A stage with the degrees of `how`, without chunks. The plan's own form holds for it.
  Stage& add_stage(const Configuration& how, std::vector<std::int64_t> devices);

 private:
  std::int32_t add(LayerTables& tables, const Configuration& how, Site site,
                   std::span<const LayerCost> costs);

  Plan plan_;
  std::int32_t options_ = 0;
  std::map<std::tuple<RunKey, std::int32_t, bool>, std::int32_t> places_;
};

/// Appends layers that all run by the same option.
void add_layers(std::span<const std::int32_t> layers, std::int32_t option, Chunk& chunk);

template <typename Costs>
std::int32_t PlanBuilder::option(LayerTables& tables, const Configuration& how, Site site,
                                 const Costs& costs) {
  const auto [place, fresh] = places_.try_emplace({run_key(how), site.group, site.only}, options_);
  return fresh ? add(tables, how, site, costs()) : place->second;
}

}  // namespace braid
