#pragma once

#include "braid/graph/graph.h"

namespace braid {

/// Whether the layer before the last looks up tokens again, and so predicts further ones
/// (multi-token prediction), before the head.
bool predicts_mtp(const Graph& graph);

}  // namespace braid
