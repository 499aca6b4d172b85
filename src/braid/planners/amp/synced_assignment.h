#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "braid/base/infinity.h"
#include "braid/planners/amp/assignment.h"

namespace braid {

struct SyncedAssignment {
  Ends ends;
  double pipeline_s = 0;  ///< amp_pipeline_s.
  double sync_s = 0;      ///< Of the stage whose gradients take longest.

  double cost_s() const { return pipeline_s + sync_s; }
};

/// The split of the layers into non-empty stages for which an iteration of AMP's model takes least:
/// amp_pipeline_s and the longest synchronisation of gradients after it (Li et al. 2022, §3.1),
/// both at once: exact. `sync_before_s[i]` has the sums of what the layers' gradients take on stage
/// i, as AssignmentStage::time_before_s. nullopt as assign_layers().
///
/// assign_layers() with less and less time for synchronisation: each answer's pipeline is the best
/// for its limit, so what is better still has to synchronise faster than this answer and than what
/// the best leaves after this pipeline. Cost: assign_layers() a few times.
std::optional<SyncedAssignment> assign_layers_and_sync(
    const AssignmentChain& chain, const std::vector<std::span<const double>>& sync_before_s);

/// That search for any kind of split: the `Assignment` whose cost_s() is least and below `below_s`,
/// its parts being pipeline_s and sync_s. `assign(sync_below_s, cost_below_s)` is an
/// optional<Assignment> with the least pipeline_s of all whose sync_s is below the one limit; it
/// may leave out what costs no less than the other.
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
