#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "braid/planners/amp/assignment.h"

#include "papers/amp/model.h"

namespace braid {

/// What AMP's model leaves open.
struct AmpRules {
  /// Bytes per element of activations handed on and of gradients. AMP takes both in single
  /// precision.
  double activation_element_bytes = 4;
  double gradient_element_bytes = 4;
  /// AMP's program gives every stage the average time over all devices; else a stage takes as long
  /// as the slowest device type among its own.
  bool average_devices = false;
};

/// AMP's cost of a strategy (§3.4).
struct AmpCost {
  double pipeline_s = 0;  ///< Equation 5.
  double sync_s = 0;      ///< Of the stage that takes longest.
  double total_s() const { return pipeline_s + sync_s; }
};

/// A pipeline whose layers are to be assigned, with what it points to. Moving keeps that valid.
struct AmpPipeline {
  AmpPipeline() = default;
  AmpPipeline(const AmpPipeline&) = delete;
  AmpPipeline& operator=(const AmpPipeline&) = delete;
  AmpPipeline(AmpPipeline&&) = default;
  AmpPipeline& operator=(AmpPipeline&&) = default;
  ~AmpPipeline() = default;

  std::vector<std::vector<double>> time_before_s;  ///< By stage, or one for all.
  AssignmentChain chain;
};

/// Stage times are 3 · micro-batch · forward time (backward takes twice as long); a handover takes
/// what the layer before the cut puts out over the slowest of the links between the shards, on
/// average over the replicas. Costs O(pp · (layers + dp · tp) + pp · layers).
AmpPipeline amp_pipeline(const AmpModel& model, const AmpCluster& cluster,
                         const AmpStrategy& strategy, std::int64_t global_batch,
                         const AmpRules& rules);

/// Ring all-reduce of the gradients, 2·(dp - 1)/dp · parameters over the slowest link of the ring,
/// of the stage and shard that takes longest; rings do not disturb each other.
double amp_sync_s(const AmpModel& model, const AmpCluster& cluster, const AmpStrategy& strategy,
                  const Ends& ends, const AmpRules& rules);

AmpCost amp_cost(const AmpModel& model, const AmpCluster& cluster, const AmpStrategy& strategy,
                 std::int64_t global_batch, const Ends& ends, const AmpRules& rules);

}  // namespace braid
