#pragma once

#include <cstdint>

#include "braid/planners/graphpipe/in_flight_rule.h"
#include "braid/planners/job/job.h"

namespace braid {

/// Which stages the planner graphpipe tries.
enum class GraphStages : std::uint8_t {
  series_parallel,  ///< Those of series-parallel graphs, and lines of stages.
  exact,            ///< And all others, for each micro-batch size (planners/graphpipe/exact.h).
};

/// The strategies to run a stage's layers that the planner graphpipe tries.
enum class StageOptions : std::uint8_t {
  all,   ///< Every degree of tensor parallelism and kind of recomputation, stage by stage.
  data,  ///< Data parallelism alone, nothing recomputed (Jeon 2024).
};

/// What the planner graphpipe alone is told.
struct GraphPipeOptions {
  GraphStages graph_stages = GraphStages::series_parallel;
  StageOptions stage_options = StageOptions::all;
  InFlight in_flight = InFlight::least;
  bool greedy_orders = false;  ///< Try the greedy order of passes too.
};
struct GraphPipeSpace : SpaceOptions, GraphPipeOptions {};

/// GraphPipe (Jeon 2024, §3): stages that form a graph, each with its own number of replicas,
/// tensor parallelism and recomputation (space.stage_options), one micro-batch size; the slowest
/// stage's time per sample least for each size, the size by simulation
/// (planners/graphpipe/iteration.h), 1F1B with as many micro-batches in flight as space.in_flight
/// says or, with space.greedy_orders, in the greedy order of passes (planners/graphpipe/greedy.h)
/// where that takes less time or as long with no more memory. With GraphStages::exact, Error for
/// graphs that are too large for that. No ZeRO.
Outcome plan_graphpipe(const Job& job, const System& system, const GraphPipeSpace& space,
                       const Budget& budget, const Progress& progress = {});

}  // namespace braid
