#pragma once

#include <cstdint>
#include <vector>

#include "braid/backend/pattern/op_graph.h"

namespace braid {

/// For each node the first other one that every way from it to an output passes; -1 where there is
/// none. A node that nothing reads counts as an output. Cost: the edges times the depth of the tree
/// of post-dominators, which is small where graphs are long rather than branched.
std::vector<std::int32_t> post_dominators(const OpGraph& graph);

}  // namespace braid
