#pragma once

#include <string>
#include <vector>

#include "braid/graph/graph.h"
#include "braid/plan/plan.h"

namespace braid {

/// What a plan depends on beside the figures of chips and networks, a line each: the host memory
/// that it uses, and how far the layers of chips that map are from the best mappings. `graph` is
/// the plan's model in its working precision; null: there is none.
std::vector<std::string> plan_assumptions(const Graph* graph, const Plan& plan);

}  // namespace braid
