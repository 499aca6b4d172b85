#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "braid/system/collective.h"

namespace braid {

/// Time of `collective` (all_reduce, reduce_scatter or all_gather) over `bytes` in each of
/// `groups`, all at once, level by level of a system without bandwidth matrix: each node's members
/// by themselves, then what they have with the other nodes', and so on; of the slowest group. At
/// each level the best of ring, direct and tree (level_exchange); units that differ, or hold
/// different shares of a group, go at the slowest's pace, and groups that leave a unit share its
/// uplink. Groups name their devices in rising order. Cost: devices x levels, with a sorted map of
/// units.
double named_hierarchy_time_s(Collective collective, double bytes,
                              std::span<const std::vector<std::int64_t>> groups,
                              const System& system);

}  // namespace braid
