#pragma once

#include <vector>

#include "braid/graph/graph.h"
#include "braid/graph/op_work.h"

namespace braid {

/// What an operator of a layer keeps for its backward pass.
struct LayerKept {
  KeptTensor tensor;
  bool is_first = false;      ///< No operator before it in the layer keeps it.
  bool is_selective = false;  ///< Kept under selective recomputation too: not made again.
};

/// What an operator does in its layer, however that is run.
struct OperatorWork {
  OpWork forward;
  BackwardWork backward;
  double model_flops = 0;  ///< Of both passes.
  std::vector<LayerKept> kept;
  std::vector<TensorId> parameters;  ///< Those that no operator before it in the layer reads.
  /// Elementwise, right behind a pointwise operator whose output it reads: one kernel with it.
  bool is_fused = false;
  bool is_recomputed = false;  ///< By selective recomputation: one of Graph::selective.
};

/// Of the layer's operators, in their order. Selective recomputation makes the output of an
/// operator of Graph::selective again where what the operator reads is at hand: kept for some
/// backward pass, or made again itself. So attention keeps Q, K and V and a gated product both its
/// factors, while the sum before a norm is kept itself. Worked out once, it serves many estimates:
/// it stands as long as neither the graph nor the types of its tensors change. Quadratic in what
/// the layer keeps.
std::vector<OperatorWork> layer_work(const Graph& graph, LayerId layer);

}  // namespace braid
