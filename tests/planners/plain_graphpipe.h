#pragma once

#include "braid/planners/graphpipe/problem.h"

namespace braid::test {

/// Jeon 2024, Algorithm 2 as its listing has it, for one micro-batch size, k = 1 and the table:
/// binary series and parallel splits of the graph, every number of devices, bisection of the target
/// time to a share `epsilon` of it. What the listing leaves open: the series result is merged by
/// PickBetter like the parallel one, and a sink that branches share is a part of its own. Infinite
/// when no plan is found at any time.
double plain_graphpipe_s(const GraphPipeProblem& problem, double epsilon);

}  // namespace braid::test
