#pragma once

#include <cstdint>
#include <string>

#include "braid/cli/checked_plan.h"
#include "braid/cli/profile_answer.h"
#include "braid/cli/profile_options.h"
#include "braid/search/progress.h"

namespace braid {

/// Plans from a profile by the rules of the planner of that name (as plans_by_own_rules()) and
/// prints the solution, as text or as one JSON object, the plan that it stands for with the shared
/// simulator's figures, and the table to its file. `progress` is told times in seconds. Returns the
/// exit status. Throws Error.
int plan_profile(const ProfileOptions& options, const std::string& planner, std::int64_t budget,
                 const AnswerOutput& to, const Progress& progress = {});

/// The same as an outcome whose plans were put to the verifier, and how long that took.
CheckedOutcome outcome_by_own_rules(const ProfileOptions& options, const std::string& planner,
                                    std::int64_t budget, const Progress& progress);

}  // namespace braid
