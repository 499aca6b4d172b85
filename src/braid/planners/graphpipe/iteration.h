#pragma once

#include <cstdint>
#include <functional>

#include "braid/planners/graphpipe/problem.h"

namespace braid {

/// Shows the plans that solve_graphpipe has for each of the micro-batch sizes and for every stage
/// on any, exactly and at least 1, 2, 4, … devices by itself: of stages of series-parallel graphs,
/// then of stages that follow each other in the nodes' order (which may hold parts of several
/// branches; only real edges join them). Of these the one with the shortest iteration is looked
/// for: large micro-batches are efficient but leave the pipeline idle while it fills, few stages
/// with many devices fill it soon but synchronise gradients.
///
/// What `visit` returns bounds the time per sample that the
/// passes of any stage take of those to come that are of interest; others are left out where this
/// is seen before they are found. Returns the stages examined.
std::int64_t visit_graphpipe_plans(const GraphPipeProblem& problem,
                                   const std::function<double(const GraphPipeSolution&)>& visit);

}  // namespace braid
