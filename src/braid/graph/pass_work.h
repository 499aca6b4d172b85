#pragma once

#include "braid/graph/op_work.h"

namespace braid {

/// Bytes of the tensors that one pass of an operator reads and writes, each once.
struct PassTensors {
  double activation_bytes = 0;  ///< Activations and gradients read.
  double parameter_bytes = 0;
  double written_bytes = 0;
  double element_bytes = 2;  ///< Of one element of what the operator computes.
  int wanted_gradients = 0;  ///< Of activations, for an input-gradient pass.
  bool has_parameters = false;
};

/// Work of one pass of an operator kind over these tensors.
OpWork forward_pass_work(const OperatorKind& kind, const PassTensors& tensors);
OpWork input_gradient_pass_work(const OperatorKind& kind, const PassTensors& tensors);
OpWork weight_gradient_pass_work(const OperatorKind& kind, const PassTensors& tensors);

/// GEMMs of the forward pass of an operator kind, counted as two per multiply-add.
double gemm_flops(const OperatorKind& kind);

/// Bytes that an operator kind keeps for itself from its forward to its backward pass, in no tensor
/// of the graph: probabilities, masks, gates. `element_bytes` is the size of what it computes in.
double private_kept_bytes(const OperatorKind& kind, double element_bytes);

}  // namespace braid
