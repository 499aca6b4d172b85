#include "braid/graph/gradients.h"

#include <algorithm>
#include <type_traits>
#include <unordered_set>

#include "braid/graph/tensor_size.h"

namespace braid {
namespace {

/// Forward tensors, besides parameters, without which the gradients cannot be computed.
struct Needs {
  bool inputs_for_inputs = false;
  bool outputs_for_inputs = false;
  bool inputs_for_weights = true;
};

template <typename Kind>
Needs needs_of(const Kind& kind) {
  if constexpr (std::is_same_v<Kind, MatMul>) {
    return {.inputs_for_inputs = !kind.weight};
  } else if constexpr (std::is_same_v<Kind, Attention>) {
    return {.inputs_for_inputs = true, .outputs_for_inputs = kind.flash};
  } else if constexpr (std::is_same_v<Kind, Recurrent> || std::is_same_v<Kind, Softmax>) {
    return {.outputs_for_inputs = true};
  } else if constexpr (std::is_same_v<Kind, Normalization> || std::is_same_v<Kind, Loss>) {
    return {.inputs_for_inputs = true};
  } else if constexpr (std::is_same_v<Kind, Elementwise>) {
    const bool inputs = kind.keeps == Elementwise::Keeps::inputs;
    return {.inputs_for_inputs = inputs, .inputs_for_weights = inputs};
  } else if constexpr (std::is_same_v<Kind, MoeExperts>) {
    // The tokens that each expert received are kept apart; router weights scale the outputs.
    return {.inputs_for_inputs = false, .inputs_for_weights = false};
  } else if constexpr (std::is_same_v<Kind, Reduction> || std::is_same_v<Kind, DataMovement>) {
    return {.inputs_for_weights = false};
  } else {
    return {};
  }
}

}  // namespace

std::vector<TensorId> distinct(const std::vector<TensorId>& ids) {
  std::vector<TensorId> found;
  found.reserve(ids.size());
  constexpr std::size_t few = 16;
  if (ids.size() <= few) {
    for (const TensorId id : ids) {
      if (std::find(found.begin(), found.end(), id) == found.end()) found.push_back(id);
    }
    return found;
  }
  std::unordered_set<TensorId> seen;
  for (const TensorId id : ids) {
    if (seen.insert(id).second) found.push_back(id);
  }
  return found;
}

Gradients gradients_of(const Graph& graph, const Operator& op) {
  Gradients gradients;
  const auto tensor_of = [&](TensorId id) -> const Tensor& {
    return graph.tensors[static_cast<std::size_t>(id)];
  };
  if (op.pass != Pass::forward || std::holds_alternative<OptimizerStep>(op.kind)) return gradients;
  for (const TensorId id : op.outputs) {
    if (is_floating(tensor_of(id).dtype)) gradients.outputs.push_back(id);
  }
  if (gradients.outputs.empty()) return gradients;

  const Needs needs = std::visit([](const auto& kind) { return needs_of(kind); }, op.kind);
  for (const TensorId id : distinct(op.inputs)) {
    const Tensor& tensor = tensor_of(id);
    const bool floating = is_floating(tensor.dtype);
    if (tensor.is_parameter) {
      if (floating) gradients.parameters.push_back(id);
      if (!std::holds_alternative<DataMovement>(op.kind) &&
          !std::holds_alternative<Reduction>(op.kind)) {
        gradients.input_reads.push_back(id);
      }
    } else {
      if (floating && tensor.producer >= 0) gradients.inputs.push_back(id);
      if (needs.inputs_for_inputs) gradients.input_reads.push_back(id);
      if (needs.inputs_for_weights) gradients.weight_reads.push_back(id);
    }
  }
  if (needs.outputs_for_inputs) {
    for (const TensorId id : op.outputs) gradients.input_reads.push_back(id);
  }
  if (gradients.inputs.empty()) gradients.input_reads.clear();
  if (gradients.parameters.empty()) gradients.weight_reads.clear();
  return gradients;
}

}  // namespace braid
