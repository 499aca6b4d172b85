#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "braid/planners/job/layer_table.h"
#include "braid/planners/piper/piper_planner.h"
#include "braid/planners/piper/problem.h"

namespace braid {

/// How stages of a job may choose to run their layers: `form` has tp, ep, micro-batch, sequence
/// parallelism, recomputation and ZeRO stage, and the least dp that ep allows.
struct PiperConfig {
  Configuration form;
  double working_bytes = 0;  ///< Largest transient of any layer run so.
  double time_s = 0;         ///< Of all layers, for one sample.
};

/// What a job's piper problems have in common.
struct PiperJob {
  const Job* job = nullptr;
  const System* system = nullptr;
  LayerTables* tables = nullptr;
  std::shared_ptr<const LayerOptions> layers;
  std::vector<PiperEdge> edges;    ///< Bytes of one sample.
  double bandwidth = 0;            ///< Of a device; with levels, on the lowest.
  std::vector<PiperLevel> levels;  ///< None: the network is flat.
  std::int64_t devices = 1;        ///< That may be used.
};

/// The layer graph; as a chain when it has more than some thousands of downsets. A flat network has
/// the rate of the system's outermost level, one of levels is piper_levels_of(system).
PiperJob piper_job(const Job& job, const System& system, LayerTables& tables, PiperNetwork network);

/// All forms with the micro-batches and the split of experts of `shared` that the model and `space`
/// allow, with tensor parallelism up to `most_tp` and with recomputation if asked. Shardings: as
/// the model says, with sequence parallelism where it can be; or automatic ones, and the model's,
/// all without it, so that a stage's layers may choose any. Cost: that of the layers' tables.
std::vector<PiperConfig> piper_configs(const PiperJob& job, const SpaceOptions& space,
                                       const Configuration& shared, std::int64_t most_tp,
                                       bool recompute,
                                       ShardingSource sharding = ShardingSource::manual);

/// The problem in which stages choose among `forms`, all of one micro-batch size and split of
/// experts: an option for each form, a degree for each tp. Memory is the shared model's: `dp` is
/// what ZeRO shards over (ep without), `working_bytes` stay free on every device. An edge costs a
/// stage what one of its devices sends, less under sequence parallelism; levels above the lowest
/// carry the whole tensor. Gradients of experts that are split are synchronised by dp/ep replicas:
/// Piper charges for all dp, so that an option's time is less by what that is too much (0 at
/// least).
PiperProblem piper_problem_of(const PiperJob& job, const std::vector<PiperConfig>& forms,
                              std::int64_t dp, double working_bytes);

/// The plan of the solution of that problem, on the devices that devices_of_stages() gives: uniform
/// when stages share degrees and recomputation and lie as an order of axes has them, else with
/// forms of their own.
Plan plan_of_piper(const PiperJob& job, const std::vector<PiperConfig>& forms,
                   const PiperSolution& solution, const std::string& planner);

}  // namespace braid
