#pragma once

#include <vector>

#include "braid/plan/plan.h"
#include "braid/plan/stage_load.h"
#include "braid/schedule/pipeline.h"

namespace braid {

/// A plan as its timing sees it.
struct PlanPipeline {
  std::vector<StageLoad> loads;  ///< [stage]
  Pipeline pipeline;
};

/// Forward passes in all that the simulations accept: what their memory grows with stays below a
/// gigabyte, and their time below a few seconds.
inline constexpr std::int64_t kMostPassesWithEvents = std::int64_t{1} << 20;
inline constexpr std::int64_t kMostPassesOfGraphs = std::int64_t{1} << 22;
inline constexpr std::int64_t kMostPassesOfChains = std::int64_t{1} << 28;

/// As the plan's trainer runs it. Throws Error when the plan's stages have no schedule, or more
/// than `most_passes` passes.
PlanPipeline pipeline_of(const Plan& plan, std::int64_t most_passes);

/// The same, with the limit for timing without events.
PlanPipeline pipeline_to_time(const Plan& plan);

/// Makes all transfers take no time, and passes wait for none.
void leave_out_transfers(PlanPipeline& timed);

/// Throws Error when `time_s` is not finite: figures in the plan are absurdly large.
double checked_time_s(double time_s);

}  // namespace braid
