#pragma once

#include "braid/frontend/onnx_node.h"

namespace braid {

/// Most elements of values that are computed while the model is read: shapes, axes, indices.
inline constexpr std::int64_t most_folded = 1024;

/// Computes the values of a pointwise node (arithmetic, comparisons, Where, Cast) whose operands'
/// values are known and few. Leaves them unknown where the arithmetic has no result (division by
/// zero, overflow) or is not one of those that shapes are computed with.
void fold_pointwise(OnnxNodeView& node);

}  // namespace braid
