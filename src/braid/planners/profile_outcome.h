#pragma once

#include <string>

#include "braid/planners/phaze/placement.h"
#include "braid/planners/piper/variants.h"
#include "braid/planners/profile_plan.h"

namespace braid {

/// A published planner's answer as an outcome: by its own objective, with the plan that it stands
/// for and the shared simulator's figures, or why there is none.
struct ProfileOutcome {
  Outcome outcome;
  std::string no_plan;  ///< One line; empty with a plan.
};

/// Of `solution`, which the variant found for the problem (times in units of `time_unit_s`). Where
/// its plan holds more than a device has (working space, rounds that do not nest: what Piper does
/// not count), the plan is the best that the variant finds within less memory, and the outcome says
/// so. Cost: up to twenty more searches.
ProfileOutcome outcome_of_solution(const ProfileTarget& target, const PiperVariant& variant,
                                   const PiperProblem& problem, const PiperSolution& solution,
                                   double time_unit_s, const PiperSearchLimits& limits);

/// Of `placement`, which place_phaze() found. Where branches of its stages have devices of their
/// own or its pipelines do not divide the micro-batches, the plan is the best placement that is not
/// so, and the outcome says so.
ProfileOutcome outcome_of_placement(const ProfileTarget& target, const PhazeProblem& problem,
                                    const PhazePlacement& placement, double objective_s,
                                    const PhazeOptions& options);

}  // namespace braid
