#include "braid/validate/direct_plan.h"

#include "braid/base/error.h"
#include "braid/plan/blank_plan.h"
#include "braid/plan/totals.h"
#include "braid/profile/layer_profile.h"
#include "braid/profile/split_limits.h"

namespace braid {
namespace {

Execution execution_of(const Parallelism& parallel) {
  Execution how;
  how.micro_batch = parallel.micro_batch;
  how.tp = parallel.tp;
  how.sequence_parallel = parallel.sequence_parallel;
  how.cp = parallel.cp;
  how.ep = parallel.ep;
  how.recompute = parallel.recompute;
  how.offload_activations = parallel.offload_activations;
  how.offload_weights = parallel.offload_weights;
  return how;
}

Profile profile_of(const Graph& graph, const Execution& how, bool one_stage,
                   const Precision& precision, const LayerGroups& groups, const System& system) {
  Profile profile = layer_profile(graph, system.groups.front().chip.name, profile_edges(graph));
  for (std::size_t l = 0; l < graph.layers.size(); ++l) {
    std::vector<Option>& options = profile.kinds[static_cast<std::size_t>(graph.layers[l].kind)];
    if (!options.empty()) continue;
    Option option;
    option.name = name_of(how);
    option.how = how;
    option.cost = estimate_layer(graph, static_cast<LayerId>(l), how, precision, groups, system);
    options.push_back(std::move(option));
  }
  if (!one_stage || profile.shared.empty()) return profile;
  std::vector<std::int32_t> kind_of_layer;
  for (const ProfileLayer& layer : profile.layers) kind_of_layer.push_back(layer.kind);
  std::vector<LayerCost> costs;
  for (const std::vector<Option>& options : profile.kinds) costs.push_back(options.front().cost);
  count_shared_once(profile.shared, kind_of_layer, how, costs);
  for (std::size_t k = 0; k < costs.size(); ++k) profile.kinds[k].front().cost = costs[k];
  return profile;
}

}  // namespace

std::vector<std::int32_t> layers_of_chunks(std::int32_t layers, std::int32_t chunks) {
  std::vector<std::int32_t> counts(static_cast<std::size_t>(chunks), 0);
  const std::int32_t blocks = layers - 2;
  const bool ends_count = blocks < chunks || (blocks % chunks != 0 && layers % chunks == 0);
  const std::int32_t dealt = ends_count ? layers : blocks;
  for (std::int32_t c = 0; c < chunks; ++c) {
    counts[static_cast<std::size_t>(c)] = dealt / chunks + (c < dealt % chunks ? 1 : 0);
  }
  if (!ends_count) {
    ++counts.front();
    ++counts.back();
  }
  return counts;
}

Plan direct_plan(const Graph& graph, const Parallelism& parallel, const Precision& precision,
                 std::int64_t global_batch, const System& system) {
  const Execution how = execution_of(parallel);
  const std::string refused = refusal(split_limits(graph), how);
  if (!refused.empty()) throw Error(refused);
  const auto layers = static_cast<std::int32_t>(graph.layers.size());
  const std::int32_t chunks = parallel.pp * parallel.vp;
  if (layers < chunks || layers < 2) {
    throw Error(std::to_string(layers) + " layers cannot be dealt to " + std::to_string(chunks) +
                " chunks");
  }
  if (parallel.devices() > system.device_count) throw Error("there are too few devices");

  Plan plan = blank_plan(graph, precision, global_batch, system);
  plan.planner = "direct";
  plan.parallel = parallel;
  plan.profile = profile_of(graph, how, parallel.pp == 1, precision,
                            layer_groups(parallel, parallel.devices(), system), system);
  plan.stages.resize(static_cast<std::size_t>(parallel.pp));
  for (int s = 0; s < parallel.pp; ++s) {
    Stage& stage = plan.stages[static_cast<std::size_t>(s)];
    stage.dp = parallel.dp;
    stage.tp = parallel.tp;
    stage.cp = parallel.cp;
    stage.devices = stage_devices(parallel, s);
  }
  std::int32_t layer = 0;
  const std::vector<std::int32_t> counts = layers_of_chunks(layers, chunks);
  for (std::size_t c = 0; c < counts.size(); ++c) {
    Chunk chunk;
    for (std::int32_t i = 0; i < counts[c]; ++i) {
      chunk.layers.push_back(layer++);
      chunk.options.push_back(0);
    }
    plan.stages[c % plan.stages.size()].chunks.push_back(std::move(chunk));
  }
  return plan;
}

}  // namespace braid
