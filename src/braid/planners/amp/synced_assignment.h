#pragma once

#include <optional>
#include <span>
#include <vector>

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
/// Cost: assign_layers() a few times (search/least_with_sync.h).
std::optional<SyncedAssignment> assign_layers_and_sync(
    const AssignmentChain& chain, const std::vector<std::span<const double>>& sync_before_s);

}  // namespace braid
