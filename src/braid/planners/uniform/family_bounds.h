#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "braid/planners/job/chain_job.h"
#include "braid/planners/job/layer_table.h"
#include "braid/planners/job/space.h"

namespace braid {

/// What no plan of a family (see families()) can do better than, whatever it trades for memory.
struct FamilyBounds {
  double sample_s = 0;     ///< Seconds that one stage of all layers takes for a sample.
  double optimizer_s = 0;  ///< Seconds that one device takes for the parameters of all stages.
  /// Bytes that all copies of the stages together hold of state, and that all stages hold of one
  /// micro-batch. Both are 0 where they may go to host memory.
  double state_bytes = 0, stash_bytes = 0;

  /// All samples' passes and the optimizer, spread over all copies.
  double time_s(std::int64_t replicas, std::int64_t global_batch) const {
    return (static_cast<double>(global_batch) * sample_s + optimizer_s) /
           static_cast<double>(replicas);
  }
  /// Of the fullest device. Falls with more copies.
  double device_bytes(std::int64_t replicas, std::int64_t layers) const {
    return state_bytes / static_cast<double>(replicas) +
           stash_bytes / static_cast<double>(std::min(replicas, layers));
  }
};

/// `micro_batches`: those that divide the batch (micro_batches_of), at least one, ascending. Cost:
/// a layer table for each.
FamilyBounds family_bounds(const ChainJob& chain, LayerTables& tables, const Configuration& family,
                           std::span<const int> micro_batches, const SpaceLimits& limits,
                           const SpaceOptions& options);

}  // namespace braid
