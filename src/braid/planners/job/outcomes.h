#pragma once

#include <string>

#include "braid/planners/job/job.h"
#include "braid/planners/job/space.h"

namespace braid {

// What outcomes of all planners begin with.

SpaceLimits space_limits(const Job& job, const System& system);

/// Name of the objective of searches for the least simulated time.
inline constexpr const char* kSimulatedObjective = "iteration time (simulated, s)";

/// An outcome with what does not depend on the search: bound from physics, assumptions, objective.
Outcome begin_outcome(const Job& job, const System& system);

/// Why there is nothing to search.
Infeasibility empty_space(const SpaceLimits& limits, const SpaceOptions& options);
/// Why nothing that was searched can be told to the trainer, which deals layers out evenly.
Infeasibility uneven_layers();

/// Which plans are on no more than `used` devices: "with --tp 2 and --dp 1", what is fixed, or "of
/// this job", whatever that is; empty where some plan is on more.
std::string device_limit(SpaceLimits limits, SpaceOptions options, std::int64_t used);
/// Why nothing that was searched fits.
std::string memory_reason(const SpaceLimits& limits);

}  // namespace braid
