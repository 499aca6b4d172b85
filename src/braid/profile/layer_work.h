#pragma once

#include <vector>

#include "braid/graph/graph.h"
#include "braid/graph/op_work.h"

namespace braid {

/// What an operator of a layer keeps for its backward pass, and whether it is the first to do so:
/// of the layer's operators, and of those that are not recomputed selectively.
struct LayerKept {
  KeptTensor tensor;
  bool is_first = false;
  bool is_first_of_stored = false;
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
  /// By selective recomputation: attention and what is pointwise (Korthikanti et al. 2022).
  bool is_recomputed = false;
};

/// Of the layer's operators, in their order. Worked out once, it serves many estimates: it stands
/// as long as neither the graph nor the types of its tensors change. Quadratic in what the layer
/// keeps.
std::vector<OperatorWork> layer_work(const Graph& graph, LayerId layer);

}  // namespace braid
