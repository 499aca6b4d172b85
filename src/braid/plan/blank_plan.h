#pragma once

#include "braid/graph/graph.h"
#include "braid/plan/plan.h"

namespace braid {

/// A plan for training `graph` on `system` that says only what is to be trained and on what:
/// without planner, profile, parallel form and stages. Cost: linear in the graph.
Plan blank_plan(const Graph& graph, const Precision& precision, std::int64_t global_batch,
                const System& system);

}  // namespace braid
