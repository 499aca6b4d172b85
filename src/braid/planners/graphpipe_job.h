#pragma once

#include <cstddef>
#include <vector>

#include "braid/planners/graphpipe_problem.h"
#include "braid/planners/layer_table.h"
#include "braid/planners/planner.h"

namespace braid {

/// A training job as a GraphPipe problem.
struct GraphPipeJob {
  /// Of the problem: tp, sequence parallelism, division and recomputation. Those that the model
  /// says come first.
  std::vector<Configuration> ways;
  std::size_t written = 0;  ///< How many of them these are.
  GraphPipeProblem problem;
};

/// A job on a homogeneous system: the layers of its graph with the estimator's times for every
/// power of two of samples per replica, and every power of two that divides the batch as
/// micro-batch size. Ways: tensor parallelism of powers of two that divide a node, the sequence
/// divided where the model allows it, and every kind of recomputation, as far as the model and
/// `space` (tp, recompute, sequence_parallel, stage_options) allow; where divisions are searched
/// for, those too; but none that another of its degree is no worse than for every layer. The plain
/// one is first. Memory as the shared model's without ZeRO; the network flat, at the rate of its
/// outermost level. Throws Error for mixed clusters, when no way is left and where the estimator
/// does. `tables`: of the job, for any number of stages.
GraphPipeJob graphpipe_job(const Job& job, const System& system, LayerTables& tables,
                           const SpaceOptions& space);

/// The plan that a solution of the problem of these ways stands for: 1F1B, each stage with its own
/// replicas, samples and way on neighbouring devices, in one node if they fit. All stages have one
/// micro-batch size.
Plan graphpipe_plan(const Job& job, const System& system, LayerTables& tables,
                    const std::vector<Configuration>& ways, const GraphPipeSolution& solution);

}  // namespace braid
