#pragma once

#include <random>
#include <utility>

#include "braid/schedule/pipeline.h"
#include "braid/schedule/schedule.h"

namespace braid {

using Random = std::mt19937_64;

inline std::int64_t pick(Random& random, std::int64_t least, std::int64_t most) {
  return std::uniform_int_distribution<std::int64_t>(least, most)(random);
}
/// A multiple of 1/8, so that sums are exact.
inline double pick_time(Random& random, std::int64_t least, std::int64_t most) {
  return static_cast<double>(pick(random, least, most)) / 8;
}

/// Of every chunk and between any two.
struct EvenTimes {
  double forward_s = 0, backward_s = 0, transfer_s = 0;
};
/// Chunks of equal times without synchronisation, joined as a chain.
Pipeline even_chain(ScheduleKind schedule, int pp, int vp, std::int64_t m, const EvenTimes& each);

/// Random times, some of them zero, on a chain. Forward and backward passes always take time.
Pipeline random_chain(Random& random, ScheduleKind schedule, int pp, int vp, std::int64_t m);

/// Random times on a random directed acyclic graph of chunks, in pipeline order.
Pipeline random_graph(Random& random, int pp, int vp, std::int64_t m);

/// A schedule that some run of the pipeline could show: passes in a random order that respects all
/// dependencies, dealt to their stages.
WorkOrder random_schedule(Random& random, const Pipeline& pipeline);

}  // namespace braid
