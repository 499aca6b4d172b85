#pragma once

#include <string>

#include "braid/plan/plan.h"

namespace braid {

/// One HTML page about a plan that needs nothing else: summary, where the time goes, memory of each
/// stage, timeline of the first micro-batches, assumptions. All text from the plan is
/// escaped. The plan must pass verify().
std::string html_report(const Plan& plan);

}  // namespace braid
