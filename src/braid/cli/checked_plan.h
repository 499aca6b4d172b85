#pragma once

#include <string>
#include <string_view>

#include "braid/cli/job_options.h"
#include "braid/plan/outcome.h"

namespace braid {

/// An outcome whose plans have been put to the verifier, and how long the search took.
struct CheckedOutcome {
  Outcome outcome;
  double wall_s = 0;
  std::string failure;  ///< The first check that a plan does not pass; empty when all hold.
};

/// Lets the candidate claim its figures and puts its plan to the verifier. Returns the first check
/// that it does not pass, with the planner's name; empty when all hold.
std::string fault_of(Candidate& candidate, const LowerBound& bound, std::string_view planner);

/// Plans a job and puts every plan to the verifier. Throws Error for bad input.
CheckedOutcome plan_and_check(const LoadedJob& loaded, const PlannerEntry& planner,
                              const Progress& progress);

/// The same, for those who need all plans to hold: one that does not is a defect of braid,
/// std::logic_error.
CheckedOutcome plan_checked(const LoadedJob& loaded, const PlannerEntry& planner,
                            const Progress& progress);

/// Of an outcome that memory leaves without a plan: adds to its reason the restrictions that are to
/// blame (restrictions_to_blame() in planners/blame.h), or that none is. Others stay as they are.
void say_what_memory_lacks_room_for(const LoadedJob& loaded, const PlannerEntry& planner,
                                    Outcome& outcome);

/// Exit status for an outcome.
int status_of(const Outcome& outcome);

}  // namespace braid
