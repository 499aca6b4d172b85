#pragma once

#include <vector>

#include "braid/schedule/stage_graph.h"

namespace braid {

/// What a stage takes, for micro-batches of its own size.
struct StageCost {
  double forward_s = 0;
  double input_gradient_s = 0;  ///< With recomputation, if any.
  double weight_gradient_s = 0;
  double reduce_gradients_s = 0;
  double optimizer_s = 0;
  /// Earliest end of the first forward pass: it waits for parameters that are gathered at the
  /// start.
  double parameters_s = 0;
  double fixed_bytes = 0;  ///< There throughout, on one device.
  double stash_bytes = 0;  ///< From the start of a forward pass to the end of the backward pass, …
  /// … but of a backward pass in halves only this much from the end of the first to the end of the
  /// second.
  double weight_stash_bytes = 0;
  /// Of a stash, on its way to the host or back, beside the above: of two stashes on a device at
  /// most, each counted as the largest of its stages'.
  double offloaded_bytes = 0;

  double backward_s() const { return input_gradient_s + weight_gradient_s; }
  friend bool operator==(const StageCost&, const StageCost&) = default;
};

/// A pipeline with its times. All figures are finite and not negative.
struct TimedGraph {
  StageGraph graph;
  std::vector<StageCost> costs;    ///< [stage]
  std::vector<double> transfer_s;  ///< [edge]: one part, each way.
  friend bool operator==(const TimedGraph&, const TimedGraph&) = default;
};

/// Costs of zero for every stage and edge.
TimedGraph timeless(StageGraph graph);

}  // namespace braid
