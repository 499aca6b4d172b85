#pragma once

#include "braid/planners/graphpipe_problem.h"
#include "braid/planners/planner.h"

namespace braid {

/// A training job on a homogeneous system as a GraphPipe problem: the layers of its graph with the
/// estimator's times for every power of two of samples per device, and every power of two that
/// divides the batch as micro-batch size. Data parallelism alone inside stages, nothing
/// recomputed; memory as the shared model's without ZeRO; the network flat, at the rate of its
/// outermost level. Throws Error for mixed clusters and where the estimator does.
GraphPipeProblem graphpipe_problem(const Job& job, const System& system);

/// The plan that a solution of that problem stands for: 1F1B, each stage with its own replicas and
/// samples on neighbouring devices, in one node if they fit. All stages have one micro-batch size.
Plan graphpipe_plan(const Job& job, const System& system, const GraphPipeSolution& solution);

}  // namespace braid
