#pragma once

#include "braid/graph/graph.h"

namespace braid {

/// One layer as a graph of its own: what it reads of other layers is an input, what others read of
/// it, or what the graph puts out, an output. Tensors keep their names and order. Linear in the
/// graph's size.
Graph layer_graph(const Graph& graph, LayerId layer);

}  // namespace braid
