#pragma once

#include "braid/planners/graphpipe/problem.h"

namespace braid {

/// The best graph pipeline whose stages are series-parallel (planners/graphpipe/shapes.h), in the
/// manner of Jeon 2024, Algorithm 2: dynamic programming from the sink over a series-parallel
/// decomposition, inside a search over target times. What is not in the listing: targets are stage
/// times that are attained, so that the search ends on the optimum instead of within ε of it;
/// partial plans keep every pair of devices used and samples in flight that no other is better than
/// in both; identical branches are planned once; a sink (source) may share a stage with branches
/// before (after) it. The rate is exact over these stages with one micro-batch size: with
/// InFlight::table (with skipping edges the samples in flight count to the next stages alone) and
/// with InFlight::least, to a share of 1e-9 (GraphPipeBottleneckSearch, GraphPipeRanking). Of the
/// best plans with one of several micro-batch sizes the one with the shortest fill_s is returned. A
/// graph that is not series-parallel is made so (OrderTree::cuts). Throws Error as
/// check_graphpipe_problem.
GraphPipeSolution solve_graphpipe(const GraphPipeProblem& problem);

}  // namespace braid
