#pragma once

#include <vector>

#include "braid/graph/bitset.h"
#include "braid/graph/downsets.h"

namespace braid {

/// Those downsets of a DAG that some topological orders pass through: of the nodes that are ready
/// the first, the last, the one that has been so longest, or shortest. At most 4 · nodes, in the
/// order of downsets(). Where all are too many to be searched, these mostly hold good cuts.
std::vector<Bitset> order_downsets(const Dag& dag);

}  // namespace braid
