#include "braid/profile/sharded_options.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "braid/profile/split_limits.h"
#include "braid/profile/tensor_comm.h"

namespace braid {
namespace {

/// "tp4:sharded full recompute" of "tp4 full recompute".
std::string sharded_name(const Execution& how, const std::string& kind) {
  std::string name = name_of(how);
  const std::size_t end = std::min(name.find(' '), name.size());
  return name.insert(end, ":" + kind);
}

template <typename Visit>
void for_each_operator(const Graph& graph, LayerId layer, const Visit& visit) {
  const Layer& range = graph.layers[static_cast<std::size_t>(layer)];
  for (OperatorId id = range.first; id < range.last; ++id) {
    visit(graph.operators[static_cast<std::size_t>(id)]);
  }
}

}  // namespace

ShardedLayers::ShardedLayers(const Graph& graph, const Precision& precision, const System& system)
    : graph_(graph),
      precision_(precision),
      system_(system),
      input_(sharding_input(graph)),
      sharded_(graph),
      mapped_(graph, precision, system.groups.front().chip) {}

std::vector<AutoSharding> ShardedLayers::shardings(LayerId layer,
                                                   std::span<const OperatorWork> works,
                                                   const Execution& how,
                                                   const LayerGroups& groups) const {
  const auto find = [&](ShardingAim aim) {
    return find_layer_sharding({graph_, layer, works}, input_, how, {precision_, groups, system_},
                               aim);
  };
  LayerSharding fastest = find(ShardingAim::time);
  if (fastest.splits.empty()) return {};
  LayerSharding smallest = find(ShardingAim::parameters);
  const bool smaller = smallest.parameters < fastest.parameters;
  std::vector<AutoSharding> found = {{"sharded", std::move(fastest.splits)}};
  if (smaller) found.push_back({"sharded-small", std::move(smallest.splits)});
  return found;
}

LayerCost ShardedLayers::cost(LayerId layer, std::span<const OperatorWork> works,
                              const Execution& how, const LayerGroups& groups,
                              const AutoSharding& sharding) {
  const LayerInput input = {sharded_.with(layer, sharding.splits), layer, works,
                            input_.leaving[static_cast<std::size_t>(layer)], &mapped_};
  return estimate_layer(input, how, {precision_, groups, system_});
}

Option ShardedLayers::option(LayerId layer, const Execution& how,
                             const AutoSharding& sharding) const {
  Option option;
  option.name = sharded_name(how, sharding.name);
  option.how = how;
  const Layer& range = graph_.layers[static_cast<std::size_t>(layer)];
  for (std::size_t i = 0; i < sharding.splits.size(); ++i) {
    const Split split = sharding.splits[i];
    if (split == Split::replicated || split == Split::sequence) continue;
    const Operator& op = graph_.operators[static_cast<std::size_t>(range.first) + i];
    option.sharded.push_back({op.name, split});
  }
  if (!option.sharded.empty()) return option;
  for (OperatorId id = range.first; id < range.last; ++id) {
    const Operator& op = graph_.operators[static_cast<std::size_t>(id)];
    option.sharded.push_back({op.name, Split::replicated});
  }
  return option;
}

std::vector<bool> borders_sharded(const Graph& graph) {
  std::vector<bool> sharded(graph.layers.size(), false);
  for (const Operator& op : graph.operators) {
    for (const TensorId id : op.inputs) {
      const OperatorId producer = graph.tensors[static_cast<std::size_t>(id)].producer;
      if (producer < 0) continue;
      const Operator& writer = graph.operators[static_cast<std::size_t>(producer)];
      if (writer.layer == op.layer || !leaves_sharded(writer)) continue;
      sharded[static_cast<std::size_t>(writer.layer)] = true;
      sharded[static_cast<std::size_t>(op.layer)] = true;
    }
  }
  return sharded;
}

std::vector<bool> kinds_closed(const Graph& graph) {
  const std::vector<bool> sharded = borders_sharded(graph);
  std::vector<bool> closed(graph.layers.size(), false);
  for (std::size_t l = 0; l < sharded.size(); ++l) {
    if (sharded[l]) closed[static_cast<std::size_t>(graph.layers[l].kind)] = true;
  }
  return closed;
}

std::vector<int> auto_degrees(const Graph& graph, std::int64_t most) {
  const ShardingInput input = sharding_input(graph);
  const std::vector<bool> closed = kinds_closed(graph);
  const SplitLimits limits = split_limits(graph);
  std::vector<LayerId> layers(closed.size(), -1);  // The first of each kind.
  for (std::size_t l = graph.layers.size(); l-- > 0;) {
    layers[static_cast<std::size_t>(graph.layers[l].kind)] = static_cast<LayerId>(l);
  }
  std::erase(layers, -1);
  std::set<std::int64_t> widths;
  for (const LayerId layer : layers) {
    for_each_operator(graph, layer, [&](const Operator& op) {
      for (const TensorId id : op.outputs) {
        widths.insert(input.features[static_cast<std::size_t>(id)].count);
      }
      if (const auto* gemm = std::get_if<MatMul>(&op.kind)) widths.insert(gemm->k);
      if (const auto* experts = std::get_if<MoeExperts>(&op.kind)) widths.insert(experts->inner);
    });
  }
  std::set<int> candidates;
  for (const std::int64_t width : widths) {
    for (std::int64_t d = 1; d <= width / d; ++d) {
      if (width % d != 0) continue;
      for (const std::int64_t divisor : {d, width / d}) {
        if (divisor > 1 && divisor <= most) candidates.insert(static_cast<int>(divisor));
      }
    }
  }
  std::vector<int> degrees;
  for (const int tp : candidates) {
    const bool manual = divides_manually(limits, tp);
    bool divides = false, possible = true;
    for (const LayerId layer : layers) {
      const Layer& range = graph.layers[static_cast<std::size_t>(layer)];
      bool found = range.last - range.first <= kMostShardedOperators;
      for_each_operator(graph, layer, [&](const Operator& op) {
        const std::size_t ways =
            operator_splits(graph, op, layer, input.features, tp, input.fixes(op)).size();
        found = found && ways > 0;
        divides = divides || ways > 1;
      });
      possible = possible && (found || (manual && !closed[static_cast<std::size_t>(range.kind)]));
    }
    if (divides && possible) degrees.push_back(tp);
  }
  return degrees;
}

}  // namespace braid
