#pragma once

#include <string>

#include "braid/planners/job/job.h"
#include "braid/planners/job/space.h"

namespace braid {

/// What the planner braid looks through, for people, to follow a colon: which assignments of layers
/// to stages under the schedules that the job may have, and what is changed in the best of them.
/// "plans of one stage, …" where it may have no pipeline.
std::string searched_space(const SpaceLimits& limits, const SpaceOptions& options);

}  // namespace braid
