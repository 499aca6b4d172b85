#pragma once

#include <cstdint>
#include <vector>

#include "braid/schedule/order_run.h"
#include "braid/schedule/timed_graph.h"
#include "braid/schedule/work_order.h"

namespace braid {

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

struct OrderTiming {
  double time_s = 0;                         ///< When everything is done.
  std::vector<DeviceTiming> devices;         ///< [device]
  std::vector<std::int64_t> peak_in_flight;  /// [stage]: micro-batches between the start of the
                                             ///< forward and the end of the backward pass (of its
                                             ///< first half), at most at once.
  std::vector<std::vector<WorkEvent>> work;  ///< [device][position], when asked for.
  std::vector<PartEvent> parts;              ///< Then: in the order in which they were started.
};

/// Runs `order` (run_order) and sums up what its devices do and hold. The graph is one that
/// check_stage_graph accepts; throws Error as check_work_order when the order is none of its
/// schedules.
OrderTiming time_order(const TimedGraph& timed, const WorkOrder& order, bool record = false);

}  // namespace braid
