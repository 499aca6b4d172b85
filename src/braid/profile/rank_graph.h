#pragma once

#include <span>

#include "braid/graph/graph.h"
#include "braid/profile/layer_work.h"
#include "braid/profile/profile.h"

namespace braid {

/// The layer of a rank's graph that does something.
inline constexpr LayerId kRankLayer = 1;
/// Its gradients in the training graph of a rank's graph (training.h).
inline constexpr LayerId kRankBackwardLayer = 2;

/// What one device does of one layer run as `how`, as a graph of that layer for one micro-batch,
/// behind a layer whose one view gives what other layers wrote, so that gradients are wanted of it:
/// operators with their share of rows, features, heads and experts (shard_of), tensors as large as
/// the device writes or reads them; sizes that do not divide are rounded up. `leaving`: tensors of
/// the layer that others read, the new graph's outputs. Operators that `take` says no to (by number
/// in the layer; empty: none) are left out, what they would have written comes from outside. Linear
/// in the layer, times the logarithm of its tensors.
Graph rank_layer(const Graph& graph, LayerId layer, const Execution& how,
                 std::span<const TensorId> leaving, const std::vector<bool>& take = {});

/// What selective recomputation repeats of it, in the same way. `works` is the layer's
/// layer_work().
Graph recomputed_rank_layer(const Graph& graph, LayerId layer, const Execution& how,
                            std::span<const OperatorWork> works);

}  // namespace braid
