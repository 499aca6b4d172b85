#include "braid/graph/graph.h"

#include <utility>

#include "braid/base/error.h"
#include "braid/graph/tensor_size.h"

namespace braid {

std::int64_t parameter_count(const Graph& graph) {
  std::int64_t count = 0;
  for (const Tensor& tensor : graph.tensors) {
    if (!tensor.is_parameter) continue;
    const auto elements = element_count(tensor);
    if (!elements || __builtin_add_overflow(count, *elements, &count)) {
      throw Error({.file = {}, .line = 0, .key = tensor.name},
                  "the number of parameters does not fit in 64 bits", "use smaller sizes");
    }
  }
  return count;
}

std::vector<LayerEdge> layer_edges(const Graph& graph) {
  const std::size_t layers = graph.layers.size();
  // Operators are grouped by layer, so edges come out in order of their target; a stable counting
  // sort by source then gives (source, target).
  std::vector<LayerEdge> by_target;
  std::vector<LayerId> tensor_counted_for(graph.tensors.size(), -1);
  std::vector<std::size_t> edge_from(layers, 0);  // Index in by_target of the edge to this target.
  std::vector<LayerId> edge_from_is_for(layers, -1);
  std::vector<std::size_t> first_of_source(layers + 1, 0);
  for (const Operator& op : graph.operators) {
    for (const TensorId id : op.inputs) {
      const Tensor& tensor = graph.tensors[static_cast<std::size_t>(id)];
      if (tensor.producer < 0) continue;
      const LayerId source = graph.operators[static_cast<std::size_t>(tensor.producer)].layer;
      if (source == op.layer) continue;
      if (std::exchange(tensor_counted_for[static_cast<std::size_t>(id)], op.layer) == op.layer) {
        continue;
      }
      const auto from = static_cast<std::size_t>(source);
      if (std::exchange(edge_from_is_for[from], op.layer) != op.layer) {
        edge_from[from] = by_target.size();
        by_target.push_back({.source = source, .target = op.layer, .bytes = 0});
        ++first_of_source[from + 1];
      }
      by_target[edge_from[from]].bytes += bytes_of(tensor);
    }
  }
  for (std::size_t layer = 0; layer < layers; ++layer) {
    first_of_source[layer + 1] += first_of_source[layer];
  }
  std::vector<LayerEdge> edges(by_target.size());
  for (const LayerEdge& edge : by_target) {
    edges[first_of_source[static_cast<std::size_t>(edge.source)]++] = edge;
  }
  return edges;
}

}  // namespace braid
