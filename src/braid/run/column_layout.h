#pragma once

#include <string>

#include "braid/graph/graph.h"
#include "braid/run/value_layout.h"

namespace braid {

/// How the output features of a product that is sharded by columns, or by entries of a vocabulary,
/// lie over `ranks` tensor-parallel ranks: along the last dimension of its result. What attention
/// or a gated function reads side by side is sharded part by part, queries, keys and values by
/// heads; fewer heads of keys than ranks lie on several of them. A vocabulary may be sharded into
/// unequal parts. Throws Error, beginning with `stage`, where ranks do not divide what they should.
ValueLayout column_layout(const Graph& graph, const Operator& product, int ranks,
                          const std::string& stage);

}  // namespace braid
