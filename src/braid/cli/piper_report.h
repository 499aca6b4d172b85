#pragma once

#include <string>

#include "braid/base/json.h"
#include "braid/cli/profile_options.h"
#include "braid/planners/piper/problem.h"

namespace braid {

/// What `braid plan --profile --json` prints of a piper problem's solution.
Json piper_json(const PiperProblem& problem, const PiperSolution& solution, const ProfileOptions& o,
                const std::string& planner, double wall_s);

/// The same for people, of a solution with stages.
std::string piper_text(const PiperProblem& problem, const PiperSolution& solution,
                       const ProfileOptions& o, const std::string& planner);

}  // namespace braid
