#pragma once

#include "braid/graph/graph.h"

namespace braid {

/// Groups the operators of a graph into layers, replacing any that it has; for graphs that come
/// without. `graph` has passed check_operators; operators in any order are put in topological
/// order. Throws Error when they form a cycle, naming operators on it.
///
/// A layer begins where one active tensor, at most, crosses from the operators before: one computed
/// since the last layer began, or the one that was active there. Views of a tensor count as that
/// tensor; graph inputs, parameters and tensors that depend on no parameter (masks, positions) do
/// not count. Every layer holds at least one heavy operator (a GEMM, a convolution, a
/// recurrence, an embedding, experts); cheap operators that follow stay with the heavy one before.
/// A stretch with more than 16 heavy operators and no such place (dense skip connections) gets one
/// layer for each heavy operator with its followers. Of more than 1,024 layers, as many in a row
/// become one as leave no more than that. Linear time for operators in order.
void group_into_layers(Graph& graph);

}  // namespace braid
