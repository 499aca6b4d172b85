#include "braid/validate/direct_plan.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "braid/base/error.h"
#include "braid/plan/blank_plan.h"
#include "braid/plan/direct_stages.h"
#include "braid/plan/totals.h"
#include "braid/profile/layer_profile.h"
#include "braid/profile/split_limits.h"
#include "braid/system/part.h"

namespace braid {
namespace {

Execution execution_of(const Parallelism& parallel) {
  Execution how;
  how.micro_batch = parallel.micro_batch;
  how.tp = parallel.tp;
  how.sequence_parallel = parallel.sequence_parallel;
  how.cp = parallel.cp;
  how.ep = parallel.ep;
  how.whole_experts = parallel.whole_experts;
  how.recompute = parallel.recompute;
  how.offload_activations = parallel.offload_activations;
  how.offload_weights = parallel.offload_weights;
  return how;
}

/// Whether the layer before the last looks up tokens again.
bool predicts_further_tokens(const Graph& graph) {
  if (graph.layers.size() < 3) return false;
  const Layer& layer = graph.layers[graph.layers.size() - 2];
  for (OperatorId id = layer.first; id < layer.last; ++id) {
    const Operator& op = graph.operators[static_cast<std::size_t>(id)];
    if (std::holds_alternative<Embedding>(op.kind)) return true;
  }
  return false;
}

/// Options of every kind of layer, one for each group of devices, in their order.
Profile profile_of(const Graph& graph, const Execution& how, const Parallelism& parallel,
                   const Precision& precision, const System& system) {
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
      option.cost = estimate_layer(graph, static_cast<LayerId>(l), how, precision, groups, part);
      if (mixed) option.device_group = static_cast<std::int32_t>(g);
      options.push_back(std::move(option));
    }
    if (parallel.pp > 1 || profile.shared.empty()) continue;
    for (const std::vector<Option>& options : profile.kinds) costs.push_back(options[g].cost);
    count_shared_once(profile.shared, kind_of_layer, how, costs);
    for (std::size_t k = 0; k < costs.size(); ++k) profile.kinds[k][g].cost = costs[k];
  }
  return profile;
}

}  // namespace

std::vector<std::int32_t> layers_of_chunks(std::int32_t layers, std::int32_t chunks,
                                           bool heavy_end) {
  std::vector<std::int32_t> counts(static_cast<std::size_t>(chunks), 0);
  const std::int32_t each = (layers - 1 + chunks - 1) / chunks;
  if (heavy_end && (chunks - 1) * each < layers - 1) {
    counts.assign(counts.size(), each);
    ++counts.front();
    counts.back() += layers - 1 - chunks * each;
    return counts;
  }
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
                 std::int64_t global_batch, const System& system,
                 std::vector<std::int32_t> counts) {
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

  Plan plan = blank_plan(graph, precision, global_batch, system);
  plan.planner = "direct";
  plan.parallel = parallel;
  plan.profile = profile_of(graph, how, parallel, precision, system);
  if (counts.empty()) counts = layers_of_chunks(layers, chunks, predicts_further_tokens(graph));
  fill_direct_stages(plan, counts);
  return plan;
}

}  // namespace braid
