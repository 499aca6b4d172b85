#pragma once

#include <cstdint>
#include <string_view>

#include "braid/system/group_span.h"
#include "braid/system/system.h"

namespace braid {

enum class Collective : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  all_to_all,
  broadcast,
  point_to_point
};

enum class CollectiveAlgorithm : std::uint8_t { none, ring, tree, hierarchical, direct };
std::string_view name_of(CollectiveAlgorithm algorithm);
std::string_view name_of(Collective collective);

struct CollectiveTime {
  double time_s = 0;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::none;
  double latency_s = 0;  ///< Part of time_s that does not depend on the size.
};

/// Time of `collective` over `bytes` by the best of the algorithms that the topology allows.
/// `bytes` is the full tensor on each device for all_reduce and broadcast, the full gathered (or
/// to-be-scattered) tensor for all_gather and reduce_scatter, what each device sends in all for
/// all_to_all, and the message for point_to_point. Zero for groups of one device.
/// Alpha-beta costs as in Thakur et al. 2005; per-level forms in docs/cost-model.md.
CollectiveTime collective_time(Collective collective, double bytes, const GroupSpan& span,
                               const System& system);

/// What each of so many devices sends by a ring, or directly where each pair exchanges: 2(n − 1)/n
/// of `bytes` for an all_reduce, (n − 1)/n for the other collectives, all for point_to_point;
/// `bytes` as for collective_time(). Nothing for one device.
double sent_bytes(Collective collective, double bytes, double devices);

/// Point-to-point time between devices `from` and `to` when `concurrent` flows leave that node.
double point_to_point_s(const System& system, std::int64_t from, std::int64_t to, double bytes,
                        std::int64_t concurrent);

}  // namespace braid
