#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "braid/system/collective.h"

namespace braid {

/// Time of `collective` (all_reduce, reduce_scatter or all_gather) over `bytes` in each of
/// `groups`, which are as large as each other, name their devices in rising order and all run at
/// once; of the slowest group. `bytes` as for collective_time. Groups that lie evenly on equal
/// nodes with equal networks take the closed forms of collective_time (aligned_span.h). Others, on
/// mixed systems or ragged nodes, take the better of one ring each (ring_all_reduce_s; half of one
/// for reduce_scatter and all_gather) and going level by level (named_hierarchy.h); on bandwidth
/// matrices rings. Cost: linear in devices for even groups, else with their sorting.
double named_groups_time_s(Collective collective, double bytes,
                           std::span<const std::vector<std::int64_t>> groups, const System& system);

}  // namespace braid
