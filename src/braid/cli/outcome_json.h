#pragma once

#include "braid/base/json.h"
#include "braid/plan/outcome.h"

namespace braid {

/// What `braid plan --json` prints.
Json outcome_to_json(const Outcome& outcome, const std::string& planner, double wall_s);

/// One row of `braid compare --json`.
Json compare_row(const Outcome& outcome, const std::string& planner, double wall_s);

}  // namespace braid
