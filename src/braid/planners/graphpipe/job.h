#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "braid/planners/graphpipe/graphpipe_planner.h"
#include "braid/planners/graphpipe/problem.h"
#include "braid/planners/job/layer_table.h"

namespace braid {

/// What a job's layers cost on each group of a system, for any number of stages. Keeps references.
class GroupTables {
 public:
  GroupTables(const Job& job, const System& system);
  GroupTables(const GroupTables&) = delete;  // Tables refer to parts.
  GroupTables& operator=(const GroupTables&) = delete;

  std::size_t groups() const { return tables_.size(); }
  /// The group by itself; of a homogeneous system the whole.
  const System& part(std::size_t group) const { return parts_[group]; }
  LayerTables& of(std::size_t group) { return tables_[group]; }
  const LayerOptions& layers() const { return *layers_; }

 private:
  std::shared_ptr<const LayerOptions> layers_;
  std::vector<System> parts_;
  std::vector<LayerTables> tables_;
};

/// A training job as a GraphPipe problem.
struct GraphPipeJob {
  /// Of the problem: tp, ep, sequence parallelism, sharding and recomputation, with the least dp
  /// that ep allows. The plain ones come first, then others that the model says.
  std::vector<Configuration> strategies;
  std::size_t plain = 1;   ///< One for each kind of devices that has any.
  std::size_t manual = 0;  ///< Plain ones and those that the model says.
  GraphPipeProblem problem;
};

/// A job on a system: the layers of its graph with the estimator's times for every power of two of
/// samples per replica, and every power of two that divides the batch as micro-batch size. Each
/// group of devices is a kind of its own. Strategies: for each group tensor parallelism of powers
/// of two that divide a node, the sequence sharded where the model allows it, experts spread over
/// powers of two of replicas, and every kind of recomputation, as far as the model and `space` (tp,
/// ep, recompute, sequence_parallel, stage_options) allow; where shardings are searched for (on one
/// group), those too; but none that another of its group and degree is no worse than for every
/// layer. Memory as the shared model's without ZeRO; the network flat, each group's devices at the
/// rate of its outermost level. Throws Error for more than kMostGraphPipePools groups, when no
/// strategy is left and where the estimator does.
GraphPipeJob graphpipe_job(const Job& job, const System& system, GroupTables& tables,
                           const GraphPipeSpace& space);

/// The plan that a solution of the problem stands for: 1F1B, each stage with its own replicas,
/// samples and strategy on neighbouring devices of its group, in one node if they fit. All stages
/// have one micro-batch size.
Plan graphpipe_plan(const Job& job, const System& system, GroupTables& tables,
                    const GraphPipeJob& planned, const GraphPipeSolution& solution);

}  // namespace braid
