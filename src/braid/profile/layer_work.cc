#include "braid/profile/layer_work.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <variant>

namespace braid {
namespace {

bool is_pointwise(const Operator& op) {
  return std::holds_alternative<Elementwise>(op.kind) ||
         std::holds_alternative<Normalization>(op.kind) || std::holds_alternative<Softmax>(op.kind);
}

bool is_fused(const Graph& graph, const Layer& layer, OperatorId id) {
  const Operator& op = graph.operators[static_cast<std::size_t>(id)];
  // What needs whole rows is a kernel of its own.
  if (!std::holds_alternative<Elementwise>(op.kind)) return false;
  return std::any_of(op.inputs.begin(), op.inputs.end(), [&](TensorId input) {
    const OperatorId producer = graph.tensors[static_cast<std::size_t>(input)].producer;
    return producer >= layer.first && producer == id - 1 &&
           is_pointwise(graph.operators[static_cast<std::size_t>(producer)]);
  });
}

/// Whether `id` is not seen yet; it is from then on. What is private (-1) never is.
bool see(std::vector<TensorId>& seen, TensorId id) {
  if (id < 0) return true;
  if (std::find(seen.begin(), seen.end(), id) != seen.end()) return false;
  seen.push_back(id);
  return true;
}

}  // namespace

std::vector<OperatorWork> layer_work(const Graph& graph, LayerId layer_id) {
  const Layer& layer = graph.layers[static_cast<std::size_t>(layer_id)];
  std::vector<OperatorWork> works;
  works.reserve(static_cast<std::size_t>(layer.last - layer.first));
  std::vector<TensorId> kept, stored, parameters;
  for (OperatorId id = layer.first; id < layer.last; ++id) {
    const Operator& op = graph.operators[static_cast<std::size_t>(id)];
    OperatorWork work;
    work.forward = forward_work(graph, op);
    work.backward = backward_work(graph, op);
    work.model_flops = forward_model_flops(graph, op) + backward_model_flops(graph, op);
    work.is_fused = is_fused(graph, layer, id);
    work.is_recomputed = std::holds_alternative<Attention>(op.kind) || is_pointwise(op);
    for (const KeptTensor& tensor : kept_for_backward(graph, op)) {
      const bool is_first = see(kept, tensor.tensor);
      work.kept.push_back({tensor, is_first, !work.is_recomputed && see(stored, tensor.tensor)});
    }
    for (const TensorId input : op.inputs) {
      if (!graph.tensors[static_cast<std::size_t>(input)].is_parameter) continue;
      if (see(parameters, input)) work.parameters.push_back(input);
    }
    works.push_back(std::move(work));
  }
  return works;
}

}  // namespace braid
