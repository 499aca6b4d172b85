#include "braid/profile/layer_profile.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "braid/base/index.h"
#include "braid/graph/tensor_size.h"
#include "braid/profile/shard.h"

namespace braid {

std::vector<ProfileEdge> profile_edges(const Graph& graph) {
  const std::vector<LayerEdge> between = layer_edges(graph);
  std::vector<ProfileEdge> edges;
  edges.reserve(between.size());
  for (const LayerEdge& edge : between) {
    edges.push_back({edge.source, edge.target, edge.bytes / static_cast<double>(graph.samples)});
  }
  return edges;
}

std::vector<SharedParameter> shared_parameters(const Graph& graph) {
  Execution two_ranks;
  two_ranks.tp = 2;
  std::vector<SharedParameter> readers(graph.tensors.size());
  for (std::size_t l = 0; l < graph.layers.size(); ++l) {
    const auto layer = static_cast<std::int32_t>(l);
    for (OperatorId id = graph.layers[l].first; id < graph.layers[l].last; ++id) {
      const Operator& op = graph.operators[static_cast<std::size_t>(id)];
      if (op.split == Split::expert) continue;
      const bool sharded = shard_of(op.split, two_ranks, 1).weight < 1;
      for (const TensorId input : op.inputs) {
        if (!graph.tensors[static_cast<std::size_t>(input)].is_parameter) continue;
        SharedParameter& parameter = readers[static_cast<std::size_t>(input)];
        // Ranks that all need the whole of it somewhere keep and sum the whole.
        parameter.sharded = sharded && (parameter.layers.empty() || parameter.sharded);
        if (parameter.layers.empty() || parameter.layers.back() != layer) {
          parameter.layers.push_back(layer);
        }
      }
    }
  }
  std::vector<SharedParameter> shared;
  for (std::size_t t = 0; t < readers.size(); ++t) {
    if (readers[t].layers.size() < 2) continue;
    readers[t].elements = 1;
    for (const std::int64_t dim : graph.tensors[t].dims) {
      readers[t].elements *= static_cast<double>(dim);
    }
    shared.push_back(std::move(readers[t]));
  }
  return shared;
}

void count_shared_once(std::span<const SharedParameter> shared,
                       std::span<const std::int32_t> kind_of_layer, const Execution& how,
                       std::span<LayerCost> costs) {
  std::vector<std::int64_t> layers_of_kind(costs.size(), 0);
  for (const std::int32_t kind : kind_of_layer) ++layers_of_kind[static_cast<std::size_t>(kind)];
  std::vector<std::int64_t> again;
  for (const SharedParameter& parameter : shared) {
    again.assign(costs.size(), 0);
    for (std::size_t r = 1; r < parameter.layers.size(); ++r) {
      const auto layer = static_cast<std::size_t>(parameter.layers[r]);
      ++again[static_cast<std::size_t>(kind_of_layer[layer])];
    }
    for (std::size_t k = 0; k < costs.size(); ++k) {
      if (again[k] == 0) continue;
      const double share = static_cast<double>(again[k]) / static_cast<double>(layers_of_kind[k]);
      costs[k].dense_parameters -= share * parameter.elements / (parameter.sharded ? how.tp : 1);
    }
  }
}

std::vector<double> layer_output_bytes(const Graph& graph) {
  std::vector<double> bytes(graph.layers.size(), 0);
  std::vector<bool> counted(graph.tensors.size(), false);
  for (const Operator& op : graph.operators) {
    for (const TensorId id : op.inputs) {
      const Tensor& tensor = graph.tensors[at(id)];
      if (tensor.producer < 0 || counted[at(id)]) continue;
      const LayerId source = graph.operators[at(tensor.producer)].layer;
      if (source == op.layer) continue;
      counted[at(id)] = true;
      bytes[at(source)] += bytes_of(tensor) / static_cast<double>(graph.samples);
    }
  }
  return bytes;
}

std::vector<std::vector<TensorId>> leaving_tensors(const Graph& graph) {
  std::vector<bool> leaves(graph.tensors.size(), false);
  for (const TensorId tensor : graph.outputs) leaves[at(tensor)] = true;
  for (const Operator& op : graph.operators) {
    for (const TensorId tensor : op.inputs) {
      const OperatorId producer = graph.tensors[at(tensor)].producer;
      if (producer >= 0 && graph.operators[at(producer)].layer != op.layer) {
        leaves[at(tensor)] = true;
      }
    }
  }
  std::vector<std::vector<TensorId>> leaving(graph.layers.size());
  for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
    const OperatorId producer = graph.tensors[t].producer;
    if (!leaves[t] || producer < 0) continue;
    leaving[at(graph.operators[at(producer)].layer)].push_back(static_cast<TensorId>(t));
  }
  return leaving;
}

Profile layer_profile(const Graph& graph, std::string chip, std::vector<ProfileEdge> edges) {
  Profile profile;
  profile.model = graph.name;
  profile.chip = std::move(chip);
  profile.provenance = "estimated";
  profile.seq_len = graph.seq_len;
  profile.edges = std::move(edges);
  profile.shared = shared_parameters(graph);
  profile.layers.reserve(graph.layers.size());
  std::size_t kinds = 0;
  for (const Layer& layer : graph.layers) {
    profile.layers.push_back({layer.name, layer.kind});
    kinds = std::max(kinds, static_cast<std::size_t>(layer.kind) + 1);
  }
  profile.kinds.resize(kinds);
  const std::vector<double> by_edges = output_bytes_of(profile);
  const std::vector<double> by_tensors = layer_output_bytes(graph);
  for (std::size_t l = 0; l < by_edges.size(); ++l) {
    if (by_edges[l] != by_tensors[l]) profile.layers[l].output_bytes = by_tensors[l];
  }
  return profile;
}

}  // namespace braid
