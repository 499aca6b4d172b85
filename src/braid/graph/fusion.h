#pragma once

#include "braid/graph/graph.h"

namespace braid {

/// Puts operators together again that a file format has taken apart, as trainers and compilers run
/// them, so that what lies between them is neither stored nor read again:
/// - softmax(Q·Kᵀ)·V, with scaling, masks and dropout on the scores, becomes one flash Attention
///   (Dao et al. 2022). Whether its mask is causal cannot be told; all scores count.
/// - Pointwise operators that lead from one activation to one output (a GELU or SiLU written out, a
///   bias before it) become one Elementwise with the sum of their arithmetic.
/// - With reductions over the rows of that activation among them they become one Normalization
///   (layer normalisation written out; with a single reduction, RMS normalisation).
/// Only operators whose results nothing else reads are put together. `graph` has passed
/// check_operators, is in topological order and has no layers; it keeps its order. Tensors that
/// nothing refers to any more are dropped. Linear in the graph's size.
void fuse_operators(Graph& graph);

}  // namespace braid
