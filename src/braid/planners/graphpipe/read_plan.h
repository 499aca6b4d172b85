#pragma once

#include <cstdint>
#include <vector>

#include "braid/planners/graphpipe/frontier.h"
#include "braid/planners/graphpipe/problem.h"
#include "braid/planners/graphpipe/shapes.h"

namespace braid {

/// The stages of a partial plan, given by its last choice: identical branches, which shapes and
/// series know by the first of them, get nodes of their own again.
std::vector<GraphPipeStage> read_graphpipe_plan(const GraphPipeProblem& problem,
                                                const GraphPipeShapes& form,
                                                const std::vector<PassGroup>& groups,
                                                const std::vector<GraphPipeChoice>& choices,
                                                std::int32_t last);

}  // namespace braid
