#include "braid/plan/direct_plan.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "braid/base/error.h"
#include "braid/graph/predicts_mtp.h"
#include "braid/plan/blank_plan.h"
#include "braid/plan/dealt_layers.h"
#include "braid/plan/direct_stages.h"
#include "braid/plan/execution_of.h"
#include "braid/plan/gradient_placeholders.h"
#include "braid/plan/totals.h"
#include "braid/profile/layer_profile.h"
#include "braid/profile/split_limits.h"
#include "braid/system/part.h"

namespace braid {
namespace {

/// Options of every kind of layer, one for each group of devices, in their order.
Profile profile_of(const Graph& graph, const Execution& how, const StatedJob& job,
                   const System& given) {
  const Parallelism& parallel = job.parallel;
  const System system = adapted_system(job.trainer.does, given);
  const double accumulation_s = accumulation_s_per_parameter(
      separately_accumulated(job.trainer.does, parallel.zero,
                             std::int64_t{parallel.dp} * parallel.cp, parallel.num_micro_batches),
      job.precision, system);
  Profile profile = layer_profile(graph, system.groups.front().chip.name, profile_edges(graph));
  const bool mixed = system.groups.size() > 1;
  std::vector<std::int32_t> kind_of_layer;
  for (const ProfileLayer& layer : profile.layers) kind_of_layer.push_back(layer.kind);
  for (std::size_t g = 0; g < system.groups.size(); ++g) {
    const System part = mixed ? group_of(system, g) : system;
    const LayerGroups groups = layer_groups(parallel, parallel.devices(), part);
    std::vector<LayerCost> costs;
    for (std::size_t l = 0; l < graph.layers.size(); ++l) {
      std::vector<Option>& options = profile.kinds[static_cast<std::size_t>(graph.layers[l].kind)];
      if (options.size() > g) continue;
      Option option;
      option.name = name_of(how);
      option.how = how;
      option.cost =
          estimate_layer(graph, static_cast<LayerId>(l), how, job.precision, groups, part);
      if (mixed) option.device_group = static_cast<std::int32_t>(g);
      options.push_back(std::move(option));
    }
    for (const std::vector<Option>& options : profile.kinds) costs.push_back(options[g].cost);
    if (parallel.pp == 1) count_shared_once(profile.shared, kind_of_layer, how, costs);
    const double overlap_loss = part.groups.front().chip.efficiency.overlap_loss;
    for (std::size_t k = 0; k < costs.size(); ++k) {
      adapt_cost(job.trainer.does, overlap_loss, accumulation_s, costs[k]);
      profile.kinds[k][g].cost = costs[k];
    }
  }
  return profile;
}

}  // namespace

Plan direct_plan(const Graph& graph, const StatedJob& job, const System& system,
                 std::vector<std::int32_t> counts) {
  const Parallelism& parallel = job.parallel;
  const Execution how = execution_of(parallel);
  const std::string refused = refusal(split_limits(graph), how);
  if (!refused.empty()) throw Error(refused);
  const auto layers = static_cast<std::int32_t>(graph.layers.size());
  const std::int32_t chunks = parallel.pp * parallel.vp;
  if (layers < chunks || layers < 2) {
    throw Error(std::to_string(layers) + " layers cannot be dealt to " + std::to_string(chunks) +
                " chunks");
  }
  if (!counts.empty() &&
      (counts.size() != static_cast<std::size_t>(chunks) ||
       std::any_of(counts.begin(), counts.end(), [](std::int32_t c) { return c < 1; }) ||
       std::accumulate(counts.begin(), counts.end(), std::int64_t{0}) != layers)) {
    throw Error("the layers of the stages are not those of the model");
  }
  if (parallel.devices() > system.device_count) throw Error("there are too few devices");

  Plan plan = blank_plan(graph, job.precision, job.global_batch, system);
  plan.trainer = job.trainer;
  plan.planner = "direct";
  plan.parallel = parallel;
  plan.profile = profile_of(graph, how, job, system);
  if (counts.empty()) counts = layers_of_chunks(layers, chunks, predicts_mtp(graph));
  fill_direct_stages(plan, counts);
  if (job.trainer.does.gradient_placeholders) add_gradient_placeholders(graph, plan);
  return plan;
}

}  // namespace braid
