#pragma once

#include <string>
#include <vector>

#include "braid/serve/serving_plan.h"

namespace braid {

/// One HTML page about a planned service that needs nothing else: the notes that its reader must
/// know first (service_notes()), its figures, its workers, time per token against tokens a second
/// and device of all workers that were looked at with the planned one marked, the memory of its
/// workers, and the front as a table. `outcome` must have a plan; `cluster` is its name. All text
/// is escaped.
std::string serving_page(const ServingOutcome& outcome, const ServingJob& job,
                         const std::string& cluster, const std::vector<std::string>& notes);

}  // namespace braid
