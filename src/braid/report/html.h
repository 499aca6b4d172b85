#pragma once

#include <optional>
#include <string>

#include "braid/plan/plan.h"
#include "braid/plan/run_costs.h"

namespace braid {

/// One HTML page about a plan that needs nothing else: summary, where the time goes, memory of each
/// stage, timeline of the first micro-batches, assumptions. All text from the plan is
/// escaped. With `run` also what that run of the plan costs. The plan must pass verify().
std::string html_report(const Plan& plan, const std::optional<RunCosts>& run = {});

}  // namespace braid
