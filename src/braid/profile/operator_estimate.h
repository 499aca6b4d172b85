#pragma once

#include <optional>

#include "braid/graph/op_work.h"
#include "braid/profile/expert_time.h"
#include "braid/profile/layer_work.h"
#include "braid/profile/operator_time.h"
#include "braid/profile/precision.h"
#include "braid/profile/profile.h"
#include "braid/profile/shard.h"

namespace braid {

/// Kernels of a forward pass of attention that keeps its scores in memory, each issued by itself:
/// two GEMMs, softmax and dropout (CoreAttention in megatron/model/transformer.py).
constexpr double kPlainAttentionKernels = 4;

/// Times of operators of one graph run one way on one chip, without communication: a roofline of
/// each kernel with shape-dependent efficiency (docs/cost-model.md).
class OperatorEstimate {
 public:
  /// `peak` is matmul_peak_in() the precision. All must outlive this.
  OperatorEstimate(const Graph& graph, const Execution& how, const Precision& precision,
                   const Chip& chip, double peak);
  OperatorEstimate(const Graph&, Execution&&, const Precision&, const Chip&, double) = delete;

  /// Of one device's share under op.split. `op` need not be in the graph, only its tensors;
  /// `work` is that of the same operator whatever its split. Cost: constant.
  OperatorTimes times(const Operator& op, const OperatorWork& work) const;

 private:
  double conversion_s(double bytes) const;
  OperatorTimes plain_attention_times(const Attention& op, const OpWork& forward,
                                      const OpWork& input_gradient, const Shard& shard) const;
  std::optional<MatMulShape> gemm_shape(const Operator& op, const Shard& shard) const;
  ExpertWork expert_shape(const MoeExperts& op, const Shard& shard) const;
  OperatorTimes recurrent_times(const Recurrent& cell, const Operator& op, bool input_gradient,
                                const Shard& shard) const;

  const Graph& graph_;
  const Execution& how_;
  const Precision& precision_;
  const Chip& chip_;
  double peak_;
  double wide_peak_;  ///< Of what keeps the activations' precision.
  bool is_narrow_;    ///< GEMMs with weights run in a narrower format than the activations'.
};

}  // namespace braid
