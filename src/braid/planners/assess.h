#pragma once

#include <cstdint>
#include <vector>

#include "braid/graph/graph.h"
#include "braid/plan/plan.h"
#include "braid/planners/evaluator.h"
#include "braid/planners/layer_table.h"
#include "braid/planners/planner.h"
#include "braid/planners/space.h"

namespace braid {

/// A configuration with its layers assigned to stages, timed.
struct Assessment {
  bool feasible = false;
  bool memory_bound = false;  ///< Memory shaped (or prevented) the partition.
  Ends ends;          ///< Of the chunks in model order: chunk c of stage s is number c·pp + s.
  double path_s = 0;  ///< No partition of this configuration is faster.
  double iteration_time_s = 0;  ///< By simulation.
  // When memory prevents every partition: the fullest stage of the most even one.
  int tightest_stage = -1;
  double needed_bytes = 0;
  /// The same of an even assignment (GPipe, interleaved) were the optimizer's state on the host.
  double needed_without_optimizer_bytes = 0;
};

/// What assess() keeps between calls.
struct AssessmentScratch {
  explicit AssessmentScratch(const ChainJob& chain) : evaluator(chain) {}

  Evaluator evaluator;
  Layout layout;  ///< Of the last assignment looked at.
  Layout even;    ///< Stages of the last even one whose memory was asked for.
  std::vector<double> handover_s;
};

/// Bytes that no assignment of the layers can keep all devices below, whichever configuration of a
/// range it is for: the state of all layers and as many stashes as the last stage holds, spread
/// evenly; or what the chunk with most layers of a kind needs there. Cost: linear in the kinds of
/// layers once the table is there.
struct LeastMemory {
  double device_bytes = 0;
  double without_optimizer_bytes = 0;  ///< The same were the optimizer's state on the host.
  Configuration configuration;         ///< That of the range which may need least.
};
LeastMemory least_memory(LayerTables& tables, const ConfigurationRange& range,
                         AssessmentScratch& scratch);

/// Memory of the most even assignment, which is kept with the table.
Evaluator::Memory even_memory(const ChainJob& chain, LayerTables& tables,
                              const Configuration& configuration, AssessmentScratch& scratch);

/// Assigns layers to stages (1F1B: exactly, by path bound, within memory, or by passes and
/// optimizer where that is faster; GPipe and interleaved: as evenly as possible) and simulates.
/// When the path alone is not below `cutoff_s`, the simulation is left out: iteration_time_s stays
/// 0.
Assessment assess(const ChainJob& chain, LayerTables& tables, const Configuration& configuration,
                  double cutoff_s, AssessmentScratch& scratch);

/// Looks through the other assignments of a 1F1B configuration for one that simulates in less than
/// `time_s`: those whose path, with the least that the first stage must add before and after it, is
/// below, and whose stages have less to do. Returns false when there are more than `most`, so that
/// nothing is proven, having tried `most_of_more` of them; else `best_ends` and `time_s` are the
/// best there is. `timed` counts what it simulates.
bool improve_assignment(const ChainJob& chain, LayerTables& tables,
                        const Configuration& configuration, std::int64_t most,
                        std::int64_t most_of_more, double& time_s, Ends& best_ends,
                        std::int64_t& timed, AssessmentScratch& scratch);

/// The plan that an assessment stands for.
Plan build_plan(const ChainJob& chain, LayerTables& tables, const Configuration& configuration,
                const Ends& ends, const std::string& planner);

}  // namespace braid
