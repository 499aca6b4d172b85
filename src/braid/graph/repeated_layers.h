#pragma once

#include <cstdint>
#include <span>

#include "braid/graph/graph.h"

namespace braid {

/// Sets Layer::kind: layers get the same kind exactly when their operators (kind, sizes, split,
/// pass), the shapes and formats of their tensors, the wiring inside, the places where outside
/// tensors enter and leave, and the way parameters are shared (inside the layer, and with how many
/// layers) are equal. Names play no part. Layers are found by hash and confirmed by comparison, so
/// hash collisions never merge two kinds. Linear in the graph's size.
void find_repeated_layers(Graph& graph);

/// As above, with another hash function; the outcome is the same for every one.
using WordHash = std::uint64_t (*)(std::span<const std::uint64_t> words);
void find_repeated_layers(Graph& graph, WordHash hash);

/// Number of distinct kinds; 0 before find_repeated_layers.
std::int32_t layer_kind_count(const Graph& graph);

}  // namespace braid
