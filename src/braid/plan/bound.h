#pragma once

#include <string>

#include "braid/graph/graph.h"
#include "braid/plan/plan.h"

namespace braid {

/// A time per iteration that no plan for this job on this system can beat, and what sets it.
struct LowerBound {
  double time_s = 0;
  double compute_s = 0;  ///< All forward and backward arithmetic at peak over all devices.
  double memory_s = 0;   ///< Compulsory bytes at full memory bandwidth over all devices.
  double network_s = 0;  ///< Bytes that must cross network cuts (network_bound.h).
  std::string binding;   ///< "arithmetic at peak", "memory bandwidth", "network".
};

/// Lower bound for one iteration of `global_batch` samples, layers sharded as the model says or
/// also in other ways. Throws Error when a chip does not list the peak for the precision. Cost: as
/// network_bound_s.
LowerBound lower_bound(const Graph& graph, const Precision& precision, std::int64_t global_batch,
                       const System& system, ShardingSource sharding = ShardingSource::manual);

}  // namespace braid
