#pragma once

#include <cstdint>
#include <string>

#include "braid/base/document.h"
#include "braid/cli/profile_answer.h"
#include "braid/cli/profile_options.h"
#include "braid/search/progress.h"

namespace braid {

/// Plans from a profile as Piper or the relative of that name does, prints the solution, and writes
/// the table and the plan to their files. `document` is the parsed profile; `budget` counts stages.
/// `progress` is told times in seconds. Returns the exit status. Throws Error.
int plan_piper_profile(const ProfileOptions& options, const Document& document,
                       const std::string& planner, std::int64_t budget, const AnswerOutput& to,
                       const Progress& progress);

/// The same as an outcome, not checked yet. Throws Error.
CheckedOutcome piper_outcome(const ProfileOptions& options, const Document& document,
                             const std::string& planner, std::int64_t budget,
                             const Progress& progress);

}  // namespace braid
