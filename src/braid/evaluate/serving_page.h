#pragma once

#include <string>

#include "braid/serve/serving_plan.h"

namespace braid {

/// One HTML page about a planned service that needs nothing else: its figures, its workers, time
/// per token against tokens a second and device of all workers that were looked at with the planned
/// one marked, the memory of its workers, and the front as a table. `outcome` must have a plan;
/// `cluster` is its name. All text is escaped.
std::string serving_page(const ServingOutcome& outcome, const ServingJob& job,
                         const std::string& cluster);

}  // namespace braid
