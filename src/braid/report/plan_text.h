#pragma once

#include <string>

#include "braid/plan/outcome.h"
#include "braid/report/plans_table.h"

namespace braid {

/// The plans of an outcome as rows of a table, in its order, with the gap where the search bounds
/// it.
std::vector<PlanRow> rows_of(const Outcome& outcome);

/// The plans of an outcome as a table in the field's columns, in its order.
std::string plans_table(const Outcome& outcome);

/// For people: the table, where the time of the first plan goes, the memory of its tightest stage,
/// its stages when they differ, automatic shardings of layers, the bounds, why another plan than
/// the fastest is recommended, and the assumptions.
std::string plan_text(const Outcome& outcome);

/// What the search has proven of the fastest plan, and over which space; what the planner makes
/// least where that is not the simulated time. Whole sentences in one or two lines. Needs a
/// candidate.
std::string proof_text(const Outcome& outcome);

/// Why there is no plan, in one line.
std::string infeasibility_text(const Outcome& outcome);

/// A line that says what weights hold beside the model's, to stand below a table of memory; empty
/// where that is nothing.
std::string placeholders_note(const Plan& plan);

/// "0-39" for consecutive numbers, "0-3,8" otherwise.
std::string ranges_text(const std::vector<std::int32_t>& numbers);

}  // namespace braid
