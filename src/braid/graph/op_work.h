#pragma once

#include "braid/graph/graph.h"

namespace braid {

/// Arithmetic and memory traffic of an operator, run once for the graph's samples, undivided.
struct OpWork {
  double matmul_flops = 0;  ///< Multiply-adds count as two; done by matrix units.
  double vector_flops = 0;
  double input_bytes = 0;   ///< Activations read.
  double weight_bytes = 0;  ///< Parameters read.
  double output_bytes = 0;
};

/// Forward work. Causal attention counts the half that is computed (exactly: q·(q+1)/2 scores for a
/// square mask), windows likewise.
OpWork forward_work(const Graph& graph, const Operator& op);

/// What the backward pass of an operator is made of.
struct BackwardWork {
  OpWork input_gradient;   ///< Zero work when no input needs a gradient.
  OpWork weight_gradient;  ///< Zero work for operators without parameters.
};
BackwardWork backward_work(const Graph& graph, const Operator& op);

/// Arithmetic that counts as the model's own, as MFU is defined (Chowdhery et al. 2022, appendix B):
/// matrix products only, causal attention as computed, nothing recomputed.
double forward_model_flops(const Graph& graph, const Operator& op);
double backward_model_flops(const Graph& graph, const Operator& op);

/// A tensor (or part of one) that an operator keeps from its forward to its backward pass.
struct KeptTensor {
  TensorId tensor = -1;  ///< The same tensor kept by several operators is stored once; -1: private.
  double bytes = 0;
};

/// What `op` needs in its backward pass, undivided. Flash attention keeps Q, K, V, its output and one
/// f32 per row; plain attention also its probabilities (Korthikanti et al. 2022, §4.1).
std::vector<KeptTensor> kept_for_backward(const Graph& graph, const Operator& op);

}  // namespace braid
