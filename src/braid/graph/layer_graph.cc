#include "braid/graph/layer_graph.h"

#include <algorithm>

#include "braid/base/index.h"

namespace braid {
namespace {

/// Which tensors leave the layer.
std::vector<bool> tensors_that_leave(const Graph& graph, LayerId layer) {
  std::vector<bool> leaves(graph.tensors.size(), false);
  for (const TensorId each : graph.outputs) leaves[at(each)] = true;
  for (const Operator& op : graph.operators) {
    if (op.layer == layer) continue;
    for (const TensorId each : op.inputs) leaves[at(each)] = true;
  }
  return leaves;
}

}  // namespace

Graph layer_graph(const Graph& graph, LayerId layer) {
  const Layer& whole = graph.layers[at(layer)];
  Graph alone;
  alone.name = whole.name;
  alone.samples = graph.samples;
  alone.seq_len = graph.seq_len;
  alone.selective = graph.selective;
  std::vector<TensorId> number(graph.tensors.size(), -1);
  for (OperatorId o = whole.first; o < whole.last; ++o) {
    for (const std::vector<TensorId>* ids :
         {&graph.operators[at(o)].inputs, &graph.operators[at(o)].outputs}) {
      for (const TensorId each : *ids) number[at(each)] = 0;
    }
  }
  const std::vector<bool> leaves = tensors_that_leave(graph, layer);
  for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
    if (number[t] < 0) continue;
    number[t] = static_cast<TensorId>(alone.tensors.size());
    Tensor tensor = graph.tensors[t];
    const bool is_own = tensor.producer >= whole.first && tensor.producer < whole.last;
    tensor.producer = is_own ? tensor.producer - whole.first : -1;
    if (is_own && leaves[t]) alone.outputs.push_back(number[t]);
    if (!is_own && !tensor.is_parameter) alone.inputs.push_back(number[t]);
    alone.tensors.push_back(std::move(tensor));
  }
  for (OperatorId o = whole.first; o < whole.last; ++o) {
    Operator op = graph.operators[at(o)];
    for (TensorId& each : op.inputs) each = number[at(each)];
    for (TensorId& each : op.outputs) each = number[at(each)];
    op.layer = 0;
    alone.operators.push_back(std::move(op));
  }
  alone.layers.push_back({whole.name, 0, whole.last - whole.first, 0});
  return alone;
}

}  // namespace braid
