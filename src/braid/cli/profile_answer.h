#pragma once

#include <string>

#include "braid/base/json.h"
#include "braid/cli/checked_plan.h"
#include "braid/planners/profile_outcome.h"

namespace braid {

/// How an answer is printed, and where its plan is written.
struct AnswerOutput {
  bool json = false;  ///< One JSON object instead of text.
  std::string file;   ///< Of the plan; "-": standard output, and nothing else is printed; or empty.
};

/// What text and JSON say of the plan that an answer by own rules stands for: the shared
/// simulator's figures.
std::string plan_line(const ProfileOutcome& made);
void add_plan(const ProfileOutcome& made, Json& json);

/// Checks the plan of such an answer, and writes it to `output`, if not empty. Throws Error when
/// there is none to write, std::logic_error when it does not hold.
void finish_plan(ProfileOutcome& made, const std::string& planner, const std::string& output);

}  // namespace braid
