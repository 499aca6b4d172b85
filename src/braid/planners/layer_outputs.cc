#include "braid/planners/layer_outputs.h"

#include <algorithm>
#include <cstddef>

#include "braid/graph/tensor_size.h"

namespace braid {

std::vector<double> layer_output_bytes(const Graph& graph) {
  std::vector<double> bytes(graph.layers.size(), 0);
  std::vector<bool> counted(graph.tensors.size(), false);
  for (const Operator& op : graph.operators) {
    for (const TensorId id : op.inputs) {
      const Tensor& tensor = graph.tensors[static_cast<std::size_t>(id)];
      if (tensor.producer < 0 || counted[static_cast<std::size_t>(id)]) continue;
      const LayerId source = graph.operators[static_cast<std::size_t>(tensor.producer)].layer;
      if (source == op.layer) continue;
      counted[static_cast<std::size_t>(id)] = true;
      bytes[static_cast<std::size_t>(source)] +=
          bytes_of(tensor) / static_cast<double>(graph.samples);
    }
  }
  return bytes;
}

std::vector<double> chain_cut_bytes(std::span<const double> output_bytes,
                                    std::span<const std::pair<std::int32_t, std::int32_t>> edges) {
  std::vector<std::size_t> needed_until(output_bytes.size(), 0);
  for (const auto& [source, target] : edges) {
    std::size_t& last = needed_until[static_cast<std::size_t>(source)];
    last = std::max(last, static_cast<std::size_t>(target));
  }
  std::vector<double> from(output_bytes.size() + 1,
                           0);  // What is needed no longer from a layer on.
  std::vector<double> bytes;
  bytes.reserve(output_bytes.size());
  double open = 0;
  for (std::size_t l = 0; l + 1 < output_bytes.size(); ++l) {
    if (needed_until[l] > l) {
      open += output_bytes[l];
      from[needed_until[l]] += output_bytes[l];
    }
    open = std::max(0.0, open - from[l]);
    bytes.push_back(open);
  }
  return bytes;
}

std::vector<std::pair<std::int32_t, std::int32_t>> layer_pairs(const Graph& graph) {
  std::vector<std::pair<std::int32_t, std::int32_t>> pairs;
  for (const LayerEdge& edge : layer_edges(graph)) pairs.emplace_back(edge.source, edge.target);
  return pairs;
}

}  // namespace braid
