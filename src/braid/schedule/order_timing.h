#pragma once

#include <cstdint>
#include <vector>

#include "braid/schedule/stage_graph.h"
#include "braid/schedule/work_order.h"

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

struct DeviceTiming {
  double start_s = 0;  ///< Of its first pass.
  double end_s = 0;    ///< Of all it does.
  double busy_s = 0;   ///< Passes and optimizer steps.
  double peak_bytes = 0;
  friend bool operator==(const DeviceTiming&, const DeviceTiming&) = default;
};

struct WorkEvent {
  double start_s = 0, end_s = 0;
  Work work;
  double bytes = 0;       ///< Memory of the device while it runs, …
  double left_bytes = 0;  ///< … and afterwards.
  friend bool operator==(const WorkEvent&, const WorkEvent&) = default;
};

struct PartEvent {
  double start_s = 0, end_s = 0;
  std::int32_t edge = 0;
  bool backward = false;  ///< A gradient.
  std::int64_t part = 0;  ///< Counted in parts of the edge, over all rounds.
  friend bool operator==(const PartEvent&, const PartEvent&) = default;
};

struct OrderTiming {
  double time_s = 0;                         ///< When everything is done.
  std::vector<DeviceTiming> devices;         ///< [device]
  std::vector<std::int64_t> peak_in_flight;  /// [stage]: micro-batches between the start of the
                                             ///< forward and the end of the backward pass (of its
                                             ///< first half), at most at once.
  std::vector<std::vector<WorkEvent>> work;  ///< [device][position], when asked for.
  std::vector<PartEvent> parts;              ///< Then: in the order in which they were started.
};

/// Runs `order`: each device does what is next as soon as what it needs is there
/// (docs/schedules.md, "When things start"). Deterministic; linear in passes and parts. The graph
/// is one that check_stage_graph accepts; throws Error as check_work_order when the order is none
/// of its schedules.
OrderTiming time_order(const TimedGraph& timed, const WorkOrder& order, bool record = false);

}  // namespace braid
