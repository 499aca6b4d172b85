#pragma once

#include "braid/planners/graphpipe/problem.h"
#include "braid/schedule/stage_graph.h"

namespace braid {

/// Most copies that any stage before and after a stage has (GraphPipeStrategy).
struct NeighbourCopies {
  std::int64_t before = 1, after = 1;
};

/// What a stage of these nodes costs per sample between such neighbours, straight from the
/// definition.
double graphpipe_stage_time_s(const GraphPipeProblem& problem, const GraphPipeStage& stage,
                              const NeighbourCopies& neighbours = {});

/// Fills in everything else from nodes, devices, strategies and groups of the stages, straight from
/// the definition, at a rate of the slowest stage's or of `rate_s` if that is longer; then orders
/// the stages. False, and the memory beyond the limit, when one does not fit. With the least counts
/// all stages have one micro-batch size.
bool price_graphpipe(const GraphPipeProblem& problem, GraphPipeSolution& solution,
                     double rate_s = 0);

/// The least rate, between the slowest stage's time and `limit_s`, at which a plan fits, to a
/// share of 1e-12; infinite when it does not fit at that either. Fills the plan in at that rate.
double graphpipe_rate_s(const GraphPipeProblem& problem, GraphPipeSolution& solution,
                        double limit_s);

/// The stages as schedules see them (stage_graph.h): stages in the solution's order, one device
/// each standing for the stage's devices, with fixed memory and stash per micro-batch on it.
TimedGraph timed_graph_of(const GraphPipeProblem& problem, const GraphPipeSolution& solution);

}  // namespace braid
