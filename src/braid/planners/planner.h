#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "braid/graph/graph.h"
#include "braid/plan/outcome.h"
#include "braid/planners/in_flight_rule.h"
#include "braid/planners/phaze_objective.h"
#include "braid/profile/layer_options.h"

namespace braid {

/// A training job to be planned.
struct Job {
  /// The model, where there is one: for its bounds and its shape, and for its layers' costs where
  /// `layers` does not say them.
  const Graph* graph = nullptr;
  const LayerOptions* layers = nullptr;  ///< Null: the estimator over `graph` (EstimatedLayers).
  std::string model_source;
  Precision precision;
  Trainer trainer;  ///< What runs the plan; `graph` is what it runs (adapt_graph).
  std::int64_t global_batch = 1;
  /// Where divisions of its layers come from. Others than written ones are searched for on
  /// homogeneous systems alone.
  ShardingSource sharding = ShardingSource::written;
};

/// What piper and those of its relatives that can take a cluster's network for.
enum class PiperNetwork : std::uint8_t {
  flat,    ///< Every device as far from all others as over the outermost level.
  levels,  ///< Nodes of devices, and the levels above (piper_network.h).
};

/// Which stages the planner graphpipe tries.
enum class GraphStages : std::uint8_t {
  series_parallel,  ///< Those of series-parallel graphs, and lines of stages.
  exact,            ///< And all others, for each micro-batch size (graphpipe_exact.h).
};

/// The ways to run a stage's layers that the planner graphpipe tries.
enum class StageOptions : std::uint8_t {
  all,   ///< Every degree of tensor parallelism and kind of recomputation, stage by stage.
  data,  ///< Data parallelism alone, nothing recomputed (Jeon 2024).
};

/// Restrictions on the space; empty: everything that the model and system allow. A degree that is
/// set is fixed to that value.
struct SpaceOptions {
  std::optional<int> tp, pp, dp, cp, ep, vp, micro_batch;
  std::optional<bool> sequence_parallel;
  std::optional<Recompute> recompute;
  std::optional<Zero> zero;
  std::optional<ScheduleKind> schedule;
  bool allow_offload = true;
  TrainerLimits can;         ///< Nothing but what the trainer can be told.
  bool all_devices = false;  ///< Of the planner braid: no plans that leave devices idle.
  int top = 1;               ///< How many plans to return.
  /// Where layers have a finite list of options: nothing else. Not owned; set by planners().
  const ListedExecutions* listed = nullptr;
  PhazeObjective phaze_objective = PhazeObjective::flush;  ///< What the planner phaze makes least.
  PiperNetwork piper_network = PiperNetwork::flat;
  GraphStages graph_stages = GraphStages::series_parallel;
  StageOptions stage_options = StageOptions::all;
  InFlight in_flight = InFlight::least;  ///< Of the planner graphpipe.
  bool greedy_orders = false;            ///< Likewise: try the greedy order of passes too.
};

/// Called now and then during long searches: best so far, bound, work done.
using Progress = std::function<void(double best_s, double bound_s, std::int64_t work)>;

/// braid's planner: best-first by bound over the documented space (docs/design.md, "braid"); mixed
/// clusters and bandwidth matrices have one of their own (mixed_planner.h).
Outcome plan_braid(const Job& job, const System& system, const SpaceOptions& space,
                   const Budget& budget, const Progress& progress = {});

/// What of the same space uses all devices, every configuration evaluated whether it can be best or
/// not: what the planner `braid` is held against, and how large its space is.
Outcome plan_exhaustively(const Job& job, const System& system, const SpaceOptions& space,
                          const Budget& budget, const Progress& progress = {});

/// Megatron-LM's published rule of thumb (Narayanan et al. 2021, §3): tensor parallelism up to the
/// node, then pipeline until the model fits, data parallelism with the rest; full recomputation.
Outcome plan_megatron(const Job& job, const System& system, const SpaceOptions& space,
                      const Budget& budget, const Progress& progress = {});

/// AMP (Li et al. 2022) on a homogeneous system, where its placement order is braid's default
/// (others: amp_mixed_planner.h):
/// every pp, dp, tp and micro-batch size, layers assigned exactly for AMP's model of a pipeline,
/// within memory (see amp_job.h). The objective is AMP's cost.
Outcome plan_amp(const Job& job, const System& system, const SpaceOptions& space,
                 const Budget& budget, const Progress& progress = {});

/// AMP's simulated annealing over the same strategies and both orders of the axes: 2 chains of 50
/// steps, fixed seeds.
Outcome plan_amp_sa(const Job& job, const System& system, const SpaceOptions& space,
                    const Budget& budget, const Progress& progress = {});

/// The best by AMP's cost of 100 of them drawn at random, fixed seed.
Outcome plan_random(const Job& job, const System& system, const SpaceOptions& space,
                    const Budget& budget, const Progress& progress = {});

/// Phaze's placement (Adnan et al. 2024, §5) on a homogeneous system taken for a flat network of
/// its slowest links: one tp, pp, dp and micro-batch size, all layers recomputed or none, stages
/// exact for space.phaze_objective (phaze_objective.h) within braid's memory. The plan's times by
/// all three stand beside the objective.
Outcome plan_phaze(const Job& job, const System& system, const SpaceOptions& space,
                   const Budget& budget, const Progress& progress = {});

/// GraphPipe (Jeon 2024, §3): stages that form a graph, each with its own number of replicas,
/// tensor parallelism and recomputation (space.stage_options), one micro-batch size; the slowest
/// stage's time per sample least for each size, the size by simulation (graphpipe_iteration.h),
/// 1F1B with as many micro-batches in flight as space.in_flight says or, with space.greedy_orders,
/// in the greedy order of passes (graphpipe_greedy.h) where that takes less time or as long with no
/// more memory. With GraphStages::exact, Error for graphs that are too large for that. No ZeRO.
Outcome plan_graphpipe(const Job& job, const System& system, const SpaceOptions& space,
                       const Budget& budget, const Progress& progress = {});

struct PlannerEntry {
  std::string_view name;
  std::string_view description;
  Outcome (*plan)(const Job&, const System&, const SpaceOptions&, const Budget&, const Progress&);
  bool unlike_stages = false;  ///< Its stages have parallel forms of their own.
};
/// All planners, in the order in which they are listed to users.
const std::vector<PlannerEntry>& planners();
/// Throws Error with the known names.
const PlannerEntry& find_planner(const std::string& name);

}  // namespace braid
