#pragma once

#include <algorithm>
#include <optional>
#include <utility>

#include "braid/base/infinity.h"

namespace braid {

/// The `Assignment` whose cost_s() is least and below `below_s`, its parts being pipeline_s and
/// sync_s, the longest synchronisation of gradients after the pipeline. `assign(sync_below_s,
/// cost_below_s)` is an optional<Assignment> with the least pipeline_s of all whose sync_s is below
/// the one limit; it may leave out what costs no less than the other.
///
/// It is called with less and less time for synchronisation: each answer's pipeline is the best for
/// its limit, so what is better still has to synchronise faster than this answer and than what the
/// best leaves after this pipeline. Cost: a few calls.
template <typename Assignment, typename Assign>
std::optional<Assignment> least_with_sync(Assign assign, double below_s = kInfinity) {
  std::optional<Assignment> best;
  double limit_s = kInfinity;
  while (limit_s > 0) {
    std::optional<Assignment> found = assign(limit_s, below_s);
    if (!found.has_value()) break;
    const double pipeline_s = found->pipeline_s;
    limit_s = found->sync_s;
    if (found->cost_s() < below_s) {
      below_s = found->cost_s();
      best = std::move(found);
    }
    limit_s = std::min(limit_s, below_s - pipeline_s);
  }
  return best;
}

}  // namespace braid
