#pragma once

#include <optional>
#include <string>

#include "braid/plan/plan.h"
#include "braid/plan/run_costs.h"
#include "braid/report/alternatives.h"

namespace braid {

/// One HTML page about a plan that needs nothing else, with the figures of the terminal's report:
/// summary, the alternatives beside it, where the time goes, stages and their memory, timeline,
/// memory over time, assumptions. With `run` also what that run of the plan costs. All text from
/// the plan is escaped. The plan must pass verify(). A part more is a section() in the list at the
/// end of html_report().
std::string html_report(const Plan& plan, const Alternatives& alternatives = {},
                        const std::optional<RunCosts>& run = {});

}  // namespace braid
