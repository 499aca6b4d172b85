#pragma once

#include <vector>

#include "braid/graph/graph.h"

namespace braid {

/// Arithmetic and memory traffic of an operator, run once for the graph's samples, unsharded.
struct OpWork {
  double matmul_flops = 0;  ///< Multiply-adds count as two; done by matrix units.
  double vector_flops = 0;
  double input_bytes = 0;   ///< Activations read.
  double weight_bytes = 0;  ///< Parameters read.
  double output_bytes = 0;

  OpWork& operator+=(const OpWork& other) {
    matmul_flops += other.matmul_flops;
    vector_flops += other.vector_flops;
    input_bytes += other.input_bytes;
    weight_bytes += other.weight_bytes;
    output_bytes += other.output_bytes;
    return *this;
  }
  friend bool operator==(const OpWork&, const OpWork&) = default;
};

/// Work of an operator as it stands in its graph: for operators of a model's graph the forward
/// work, for the gradient operators of a training graph (Operator::pass) that of their pass. Causal
/// attention counts the half that is computed (exactly: q·(q+1)/2 scores for a square mask),
/// windows likewise.
///
/// GEMMs: a GEMM takes 2·batch·m·n·k; attention 2·(qk_dim + v_dim) per score; a
/// convolution is the implicit GEMM of [samples · positions] × [in_channels/groups ·
/// kernel] × [out_channels]; experts 2·matrices·hidden·inner for each of tokens · top_k visits.
/// Vector arithmetic per element: softmax 5, layer norm 7, RMS norm 4, recurrent gate 6.
/// Traffic: each tensor read or written once, except that an embedding reads only the rows it looks
/// up, experts only the weights of experts that can be reached, and what a kernel writes and reads
/// again (unfused attention's scores, the experts' inner activations) counts each time.
OpWork forward_work(const Graph& graph, const Operator& op);

/// What the backward pass of an operator is made of.
struct BackwardWork {
  OpWork input_gradient;   ///< Zero work when no input needs a gradient.
  OpWork weight_gradient;  ///< Zero work for operators without parameters.
};

/// Work of the backward pass: one GEMM more for each operand that needs a gradient, so twice the
/// forward GEMMs where both do. An input needs a gradient when it is a floating-point tensor
/// that an operator produces. Flash attention has two forward GEMMs and five backward ones: Q·Kᵀ
/// again, then the gradients of the probabilities, V, Q and K (Dao et al. 2022, Algorithm 4).
BackwardWork backward_work(const Graph& graph, const Operator& op);

/// Model FLOPs, as model FLOPs utilisation counts them (Chowdhery et al. 2022, Appendix B;
/// Korthikanti et al. 2022 §5): the GEMMs that the model asks for, whatever is computed again.
/// Attention counts two forward and four backward. Causal masks count the half that is asked for.
double forward_model_flops(const Graph& graph, const Operator& op);
double backward_model_flops(const Graph& graph, const Operator& op);

/// A tensor (or part of one) that an operator keeps from its forward to its backward pass.
struct KeptTensor {
  TensorId tensor = -1;  ///< The same tensor kept by several operators is stored once; -1: private.
  double bytes = 0;
  friend bool operator==(const KeptTensor&, const KeptTensor&) = default;
};

/// What `op` needs in its backward pass, unsharded. Flash attention keeps Q, K, V, its output and
/// one f32 per row; plain attention also its probabilities (Korthikanti et al. 2022, §4.1), and
/// with dropout a byte mask and the probabilities after it. Row statistics of normalisations are
/// left out, as there. Nothing for operators that no gradient passes through.
std::vector<KeptTensor> kept_for_backward(const Graph& graph, const Operator& op);

}  // namespace braid
