#pragma once

#include <cstdint>
#include <string_view>

#include "braid/planners/graphpipe/in_flight_rule.h"
#include "braid/planners/job/family_options.h"
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

inline constexpr std::string_view kGraphPipeStageWords[] = {"sp", "exact"};
inline constexpr std::string_view kGraphPipeInFlightWords[] = {"least", "table"};
inline constexpr std::string_view kGraphPipeRunWords[] = {"all", "data"};
inline constexpr std::string_view kGraphPipeScheduleWords[] = {"greedy"};
inline constexpr FamilyOption kGraphPipeOptionList[] = {
    {"graph",
     "Which stages graphpipe tries: sp (of series-parallel graphs and lines, the default) or exact "
     "(and all others, of graphs that are not too large)",
     kGraphPipeStageWords},
    {"inflight",
     "How many micro-batches graphpipe's stages have in flight: least (the fewest that lose no "
     "time, the default) or table (Jeon 2024, Table 3.2)",
     kGraphPipeInFlightWords},
    {"stage-options",
     "How graphpipe's stages may run: all (each with its own tensor parallelism and recomputation, "
     "the default) or data (data parallelism alone, as in Jeon 2024)",
     kGraphPipeRunWords},
    {"schedule", "greedy: the planner graphpipe tries the greedy order of passes too",
     kGraphPipeScheduleWords, /*adds_to_general=*/true}};
inline constexpr FamilyOptions kGraphPipeOptions{"Planner graphpipe", kGraphPipeOptionList};

/// The space with what words for kGraphPipeOptions say.
GraphPipeSpace graphpipe_space(const SpaceOptions& space, const FamilyWords& words);

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
