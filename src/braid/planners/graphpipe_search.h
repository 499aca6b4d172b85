#pragma once

#include <functional>

#include "braid/planners/graphpipe_problem.h"

namespace braid {

/// The best graph pipeline whose stages are series-parallel (graphpipe_shapes.h), in the manner of
/// Jeon 2024, Algorithm 2: dynamic programming from the sink over a series-parallel decomposition,
/// inside a search over target times. What is not in the listing: targets are stage times that are
/// attained, so that the search ends on the optimum instead of within ε of it; partial plans keep
/// every pair of devices used and samples in flight that no other is better than in both; identical
/// branches are planned once; a sink (source) may share a stage with branches before (after) it.
/// The objective is exact over these stages with InFlight::table and one micro-batch size (with
/// skipping edges the samples in flight count to the next stages alone). With InFlight::least the
/// samples are counted at the target rate, and a partial plan is kept by how long a micro-batch
/// takes to its end and back. Of the best plans with one of several micro-batch sizes the one with
/// the shortest fill_s is returned. A graph that is not series-parallel is made so
/// (OrderTree::cuts). Throws Error as check_graphpipe_problem.
GraphPipeSolution solve_graphpipe(const GraphPipeProblem& problem);

/// Shows the plans that solve_graphpipe_iteration chooses from: stages of series-parallel graphs,
/// then stages in a line; with any devices in every stage, exactly and at least 1, 2, 4, …;
/// micro-batch size by micro-batch size. What `visit` returns bounds the time per sample of those
/// to come that are of interest. Returns the stages examined.
std::int64_t visit_graphpipe_plans(const GraphPipeProblem& problem,
                                   const std::function<double(const GraphPipeSolution&)>& visit);

/// Time of an iteration of that plan by simulation (order_timing.h), every stage with the warm-up
/// passes of its samples in flight; of more than 2^17 micro-batches over all stages the time that
/// its rate, fill and gradients allow at least.
double graphpipe_iteration_s(const GraphPipeProblem& problem, const GraphPipeSolution& solution);

/// Of the plans that solve_graphpipe has for each of the micro-batch sizes and for every stage on
/// at least 1, 2, 4, … devices by itself, and of those of stages that follow each other in the
/// nodes' order (which may hold parts of several branches; only real edges join them), the one with
/// the shortest iteration: large micro-batches are efficient but leave the pipeline idle while it
/// fills, few stages with many devices fill it soon but synchronise gradients. At best
/// Status::feasible.
GraphPipeSolution solve_graphpipe_iteration(const GraphPipeProblem& problem);

}  // namespace braid
