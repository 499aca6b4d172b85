#pragma once

#include "braid/cli/job_options.h"
#include "braid/plan/outcome.h"

namespace braid {

/// An outcome all of whose plans have passed the verifier, and how long the search took.
struct CheckedOutcome {
  Outcome outcome;
  double wall_s = 0;
};

/// Plans a job and verifies every plan. Throws Error for bad input; a plan that does not verify is
/// a defect of braid: std::logic_error.
CheckedOutcome plan_checked(const LoadedJob& loaded, const PlannerEntry& planner,
                            const Progress& progress);

/// Exit status for an outcome.
int status_of(const Outcome& outcome);

}  // namespace braid
