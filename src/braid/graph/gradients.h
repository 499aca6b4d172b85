#pragma once

#include <vector>

#include "braid/graph/graph.h"

namespace braid {

/// Which tensors the gradient operators of a forward operator read and which gradients they write.
/// Each list names forward tensors once, in operand order; an empty list of wanted tensors means
/// that there is no such gradient operator.
struct Gradients {
  std::vector<TensorId> outputs;       ///< Outputs whose gradients both gradient operators read.
  std::vector<TensorId> inputs;        ///< Activations whose gradients are wanted.
  std::vector<TensorId> parameters;    ///< Parameters whose gradients are wanted.
  std::vector<TensorId> input_reads;   ///< Forward tensors that the input gradient reads.
  std::vector<TensorId> weight_reads;  ///< Forward tensors that the weight gradient reads.
};

/// Gradients of a forward operator of `graph`. An activation wants a gradient when it is a
/// floating-point tensor with a producer, a parameter when it is floating-point; nothing does when
/// the operator has no floating-point output.
Gradients gradients_of(const Graph& graph, const Operator& op);

/// The ids without repetitions, in order of first occurrence. Linear expected time.
std::vector<TensorId> distinct(const std::vector<TensorId>& ids);

}  // namespace braid
