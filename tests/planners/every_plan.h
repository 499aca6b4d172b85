#pragma once

#include <functional>
#include <vector>

#include "braid/planners/job/job.h"
#include "braid/planners/job/layer_table.h"
#include "braid/planners/job/space.h"

namespace braid::test {

/// A plan of braid's space, built whole and timed by the simulator.
struct EveryPlan {
  const Configuration& configuration;
  const Ends& ends;
  const Plan& plan;
  double time_s = 0;
  /// One that the search looks at: any assignment of layers under 1F1B, and those that are tried
  /// under other schedules.
  bool tried = false;
};

/// Visits every configuration of the space, with every trade of time for memory and every
/// assignment of layers, that fits: without any bound.
void each_plan(const Job& job, const System& system, const SpaceOptions& space,
               const std::function<void(const EveryPlan&)>& visit);

}  // namespace braid::test
