#pragma once

#include "braid/base/json.h"
#include "braid/cli/checked_plan.h"

namespace braid {

/// What `braid plan --json` prints.
Json outcome_to_json(const Outcome& outcome, const std::string& planner, double wall_s);

/// One row of `braid compare --json`; what there is no value for is null. `least_s` is the
/// iteration time of the fastest plan of all rows.
Json compare_row(const CheckedOutcome& checked, const std::string& planner, double least_s);
/// Degrees and settings as a plan's file has them, but that a plan of one stage has no schedule:
/// null.
Json form_to_json(const Parallelism& parallel);

/// A plan's figures beside those of a planner's own objective: times, memory, degrees and stages.
Json candidate_to_json(const Candidate& candidate, const LowerBound& bound);

/// The row, with the same keys, of a planner that does not take the job.
Json refused_row(const std::string& planner, const std::string& reason);

}  // namespace braid
