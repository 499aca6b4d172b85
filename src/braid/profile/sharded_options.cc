#include "braid/profile/sharded_options.h"

#include <algorithm>
#include <string>
#include <utility>

#include "braid/profile/tensor_comm.h"

namespace braid {
namespace {

/// "tp4:sharded full recompute" of "tp4 full recompute".
std::string sharded_name(const Execution& how, const std::string& kind) {
  std::string name = name_of(how);
  const std::size_t end = std::min(name.find(' '), name.size());
  return name.insert(end, ":" + kind);
}

}  // namespace

std::vector<Option> sharded_options(const Graph& graph, LayerId layer, const ShardingInput& input,
                                    std::span<const OperatorWork> works, const Execution& how,
                                    const Precision& precision, const LayerGroups& groups,
                                    const System& system) {
  std::vector<Option> options;
  const auto add = [&](const LayerSharding& sharding, const std::string& kind) {
    const Graph divided = with_splits(graph, layer, sharding.splits);
    Option option;
    option.name = sharded_name(how, kind);
    option.how = how;
    option.cost = estimate_layer(divided, layer, works, how, precision, groups, system,
                                 input.leaving[static_cast<std::size_t>(layer)]);
    const Layer& range = graph.layers[static_cast<std::size_t>(layer)];
    for (std::size_t i = 0; i < sharding.splits.size(); ++i) {
      const Split split = sharding.splits[i];
      if (split == Split::replicated || split == Split::sequence) continue;
      const Operator& op = graph.operators[static_cast<std::size_t>(range.first) + i];
      option.divided.push_back({op.name, split});
    }
    options.push_back(std::move(option));
  };
  const auto find = [&](ShardingAim aim) {
    return find_layer_sharding(graph, layer, input, works, how, precision, groups, system, aim);
  };
  const LayerSharding fastest = find(ShardingAim::time);
  if (fastest.splits.empty()) return options;
  add(fastest, "sharded");
  const LayerSharding smallest = find(ShardingAim::parameters);
  if (smallest.parameters < fastest.parameters) add(smallest, "sharded-small");
  return options;
}

std::vector<bool> borders_divided(const Graph& graph) {
  std::vector<bool> divided(graph.layers.size(), false);
  for (const Operator& op : graph.operators) {
    for (const TensorId id : op.inputs) {
      const OperatorId producer = graph.tensors[static_cast<std::size_t>(id)].producer;
      if (producer < 0) continue;
      const Operator& writer = graph.operators[static_cast<std::size_t>(producer)];
      if (writer.layer == op.layer || !leaves_divided(writer)) continue;
      divided[static_cast<std::size_t>(writer.layer)] = true;
      divided[static_cast<std::size_t>(op.layer)] = true;
    }
  }
  return divided;
}

}  // namespace braid
