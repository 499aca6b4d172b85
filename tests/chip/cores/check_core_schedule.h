#pragma once

#include <string>
#include <vector>

#include "braid/chip/cores/core_problem.h"
#include "braid/chip/cores/core_schedule.h"

namespace braid {

/// What is wrong with a schedule, a line each; empty where nothing is: operators that start before
/// those that they wait for have ended, take another time than on their cores, are on cores of
/// another kind or two cores that are no pair, share a core, or run beside one that is on all
/// cores; and a makespan that is not that of the last. Times may be off by 1e-9 of the makespan.
/// Compares all pairs of operators and shares nothing with the search.
std::vector<std::string> check_core_schedule(const CoreProblem& problem,
                                             const CoreSchedule& schedule);

}  // namespace braid
