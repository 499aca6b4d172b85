#pragma once

#include <optional>

#include "braid/graph/graph.h"
#include "braid/graph/model_shape.h"

namespace braid {

/// The shape that the graph's source stated, else what a forward graph's operators show; of these
/// names tell the activation function only. nullopt when it is not such a transformer: no embedding
/// table, a block with several attentions, with parallel halves or with norms behind its halves,
/// blocks that differ but for leading dense ones, or GEMMs without a known split. Linear in the
/// graph's size.
std::optional<ModelShape> model_shape(const Graph& graph);

}  // namespace braid
