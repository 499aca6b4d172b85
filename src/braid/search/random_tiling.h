#pragma once

#include <cstdint>
#include <vector>

#include "braid/search/random_numbers.h"

namespace braid {

/// Covers a mesh of columns of equal height with rectangles of shards × replicas, each upright (the
/// shards in a column) or lying, drawn at random, until it is full. The mesh's numbers, rectangle
/// after rectangle in the order of their first places, in each replica by replica. Empty when no
/// tiling was found in a fair number of steps. Preconditions: the mesh is not empty; sizes are
/// positive.
std::vector<std::int32_t> random_tiling(const std::vector<std::vector<std::int32_t>>& mesh,
                                        std::int32_t shards, std::int32_t replicas,
                                        RandomNumbers& random);

}  // namespace braid
