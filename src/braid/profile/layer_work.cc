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

bool is_among(const std::vector<TensorId>& tensors, TensorId id) {
  return std::find(tensors.begin(), tensors.end(), id) != tensors.end();
}

/// Whether `id` is not seen yet; it is from then on. What is private (-1) never is.
bool see(std::vector<TensorId>& seen, TensorId id) {
  if (id < 0) return true;
  if (is_among(seen, id)) return false;
  seen.push_back(id);
  return true;
}

bool feeds_experts(const Graph& graph, const Layer& layer, const Operator& op) {
  const auto from = graph.operators.begin();
  return std::any_of(from + layer.first, from + layer.last, [&](const Operator& reader) {
    return std::holds_alternative<MoeExperts>(reader.kind) &&
           std::any_of(reader.inputs.begin(), reader.inputs.end(),
                       [&](TensorId input) { return is_among(op.outputs, input); });
  });
}

/// Whether selective recomputation may repeat the operator.
bool is_repeatable(const Graph& graph, const Layer& layer, const Operator& op) {
  const SelectiveParts& parts = graph.selective;
  if (std::holds_alternative<Attention>(op.kind)) return parts.attention;
  if (std::holds_alternative<Normalization>(op.kind)) {
    return feeds_experts(graph, layer, op) ? parts.expert_norms : parts.norms;
  }
  return is_pointwise(op) && parts.activations;
}

/// Marks what selective recomputation repeats and, in what operators keep, what it makes again.
/// `kept`: all that some operator of the layer keeps.
void recompute_selectively(const Graph& graph, const Layer& layer,
                           const std::vector<TensorId>& kept, std::vector<OperatorWork>& works) {
  std::vector<TensorId> made_again;
  for (std::size_t i = 0; i < works.size(); ++i) {
    const Operator& op = graph.operators[static_cast<std::size_t>(layer.first) + i];
    if (!is_repeatable(graph, layer, op)) continue;
    const bool has_inputs = std::all_of(op.inputs.begin(), op.inputs.end(), [&](TensorId input) {
      return graph.tensors[static_cast<std::size_t>(input)].is_parameter || is_among(kept, input) ||
             is_among(made_again, input);
    });
    bool keeps_private = false;
    for (LayerKept& each : works[i].kept) {
      if (each.tensor.tensor >= 0) continue;
      each.is_selective = false;
      keeps_private = true;
    }
    works[i].is_recomputed = has_inputs || keeps_private;
    const bool is_attention = std::holds_alternative<Attention>(op.kind);
    if (has_inputs && (!is_attention || graph.selective.attention_output)) {
      made_again.insert(made_again.end(), op.outputs.begin(), op.outputs.end());
    }
  }
  for (OperatorWork& work : works) {
    for (LayerKept& each : work.kept) {
      if (is_among(made_again, each.tensor.tensor)) each.is_selective = false;
    }
  }
}

}  // namespace

std::vector<OperatorWork> layer_work(const Graph& graph, LayerId layer_id) {
  const Layer& layer = graph.layers[static_cast<std::size_t>(layer_id)];
  std::vector<OperatorWork> works;
  works.reserve(static_cast<std::size_t>(layer.last - layer.first));
  std::vector<TensorId> kept, parameters;
  for (OperatorId id = layer.first; id < layer.last; ++id) {
    const Operator& op = graph.operators[static_cast<std::size_t>(id)];
    OperatorWork work;
    work.forward = forward_work(graph, op);
    work.backward = backward_work(graph, op);
    work.model_flops = forward_model_flops(graph, op) + backward_model_flops(graph, op);
    work.is_fused = is_fused(graph, layer, id);
    for (const KeptTensor& tensor : kept_for_backward(graph, op)) {
      work.kept.push_back({tensor, see(kept, tensor.tensor), true});
    }
    for (const TensorId input : op.inputs) {
      if (!graph.tensors[static_cast<std::size_t>(input)].is_parameter) continue;
      if (see(parameters, input)) work.parameters.push_back(input);
    }
    works.push_back(std::move(work));
  }
  recompute_selectively(graph, layer, kept, works);
  return works;
}

}  // namespace braid
