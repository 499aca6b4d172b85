#pragma once

#include <cstdint>
#include <vector>

#include "braid/base/infinity.h"
#include "braid/graph/graph.h"
#include "braid/plan/plan.h"
#include "braid/planners/job/evaluator.h"
#include "braid/planners/job/job.h"
#include "braid/planners/job/layer_table.h"
#include "braid/planners/job/space.h"

namespace braid {

/// A configuration with its layers assigned to stages, timed.
struct Assessment {
  /// Also where none of the assignments that are tried can be faster than `cutoff_s`, fit or not.
  /// Where there are none, neither this nor memory_bound, and no stage.
  bool feasible = false;
  /// Memory shaped (or prevented) the partition: with more of it, one that is faster might be
  /// found. Of the assignments that are tried (tried_layouts.h), some faster one does not fit.
  bool memory_bound = false;
  Ends ends;          ///< Of the chunks in model order: chunk c of stage s is number c·pp + s.
  double path_s = 0;  ///< No partition of this configuration is faster.
  double iteration_time_s = 0;  ///< By simulation.
  // When memory prevents every partition: the fullest stage of that tried one which needs least
  // (GPipe and interleaved: where memory_bound).
  int tightest_stage = -1;
  double needed_bytes = 0;
  /// GPipe and interleaved, where memory_bound: the least that one of those tried would need were
  /// the optimizer's state on the host.
  double needed_without_optimizer_bytes = 0;
};

/// What assess() keeps between calls.
struct AssessmentScratch {
  explicit AssessmentScratch(const ChainJob& chain) : evaluator(chain) {}

  Evaluator evaluator;
  Layout layout;  ///< Of the last assignment looked at.
  std::vector<double> handover_s;
  std::vector<StageSync> syncs;  ///< fill_fullest_syncs().
};

/// Handovers of the last configuration that they were filled in for, as the job's trainer sends.
inline Handovers handovers_of(const ChainJob& chain, const AssessmentScratch& scratch) {
  return {scratch.handover_s, chain.job->trainer.does.blocking_sends};
}

/// Bytes that no assignment of the layers can keep all devices below, whichever configuration of a
/// range it is for (interleaved: no assignment that is tried): the state of all layers and what all
/// stages stash, spread evenly; or what the chunk (interleaved: the stage) with most layers of a
/// kind needs. A stage of one chunk holds as many stashes as the last one. Interleaved stages hold,
/// right before their first backward pass, pp stashes of each chunk but the last and one of that;
/// so the less the last chunks have, the more is stashed, and these have no more for larger vp.
/// Cost: linear in the kinds of layers once table and assignments are there.
struct MemoryFloor {
  double device_bytes = 0;
  double without_optimizer_bytes = 0;  ///< The same were the optimizer's state on the host.
  Configuration configuration;         ///< The first of the range.
};
MemoryFloor memory_floor(const ChainJob& chain, LayerTables& tables,
                         const ConfigurationRange& range, AssessmentScratch& scratch);
/// The same whatever times the layers take, which decide how many of them last chunks have: as if
/// these had all.
MemoryFloor memory_floor_at_any_times(const ChainJob& chain, LayerTables& tables,
                                      const ConfigurationRange& range, AssessmentScratch& scratch);

/// Memory of the assignment that needs least of those that are tried.
Evaluator::Memory tried_memory(const ChainJob& chain, LayerTables& tables,
                               const Configuration& configuration, AssessmentScratch& scratch);

/// Assigns layers to stages (1F1B: exactly, by path bound, within memory, or by passes and
/// optimizer where that is faster; GPipe and interleaved: the fastest of those that are tried and
/// fit, tried_layouts.h) and simulates.
/// When the path alone is not below `cutoff_s`, the simulation is left out: iteration_time_s stays
/// 0; it is infinite where another bound leaves the simulation out.
Assessment assess(const ChainJob& chain, LayerTables& tables, const Configuration& configuration,
                  double cutoff_s, AssessmentScratch& scratch);

/// Whether assess() looks at those assignments alone that are tried (tried_layouts.h).
inline bool has_few_assignments(const ChainJob& chain, const Configuration& configuration) {
  return configuration.schedule != ScheduleKind::one_f_one_b || chain.dealt_evenly;
}

/// Whether a bound leaves room for one of the assignments that are tried to be faster than
/// `cutoff_s`; not where there are none. Where these are all, and not, no trade of time for memory
/// is faster either. Cost: that of tried_layouts().
bool may_be_faster(const ChainJob& chain, LayerTables& tables, const Configuration& configuration,
                   double cutoff_s);

/// Time of a configuration with its layers dealt out so, if that fits and is less than `cutoff_s`;
/// else infinite.
double time_of(const ChainJob& chain, LayerTables& tables, const Configuration& configuration,
               const Ends& ends, double cutoff_s, AssessmentScratch& scratch);

/// What improve_assignment() looks for.
struct ImprovementLimits {
  double below_s = kInfinity;  ///< Faster than this.
  std::int64_t most = 0;       ///< Assignments to look through.
  /// How many to look at when there are more than that.
  std::int64_t most_of_more = 0;
  /// Leave those that do not fit out from the start; else they are timed too, so that
  /// `memory_bound` of the result is known.
  bool within_memory = true;
};

struct Improvement {
  double time_s = kInfinity;  ///< Of the best found; infinite: none.
  Ends ends;
  bool complete = true;       ///< There is no better one.
  bool memory_bound = false;  ///< There is one which does not fit, or may be.
  std::int64_t timed = 0;     ///< Simulations.
};

/// Looks through the other assignments of a 1F1B configuration for the one that simulates in least
/// time: those whose path, with the least that the first stage must add before and after it, is
/// below the limit, and whose stages have less to do.
Improvement improve_assignment(const ChainJob& chain, LayerTables& tables,
                               const Configuration& configuration, const ImprovementLimits& limits,
                               AssessmentScratch& scratch);

/// The layers of each run of a chain that ends there.
std::vector<std::vector<std::int32_t>> chunks_of(const Ends& ends);

/// The plan that an assessment stands for; with chunks of any layers, in the pipeline's order.
Plan build_plan(const ChainJob& chain, LayerTables& tables, const Configuration& configuration,
                std::span<const std::vector<std::int32_t>> chunks, const std::string& planner);
Plan build_plan(const ChainJob& chain, LayerTables& tables, const Configuration& configuration,
                const Ends& ends, const std::string& planner);

}  // namespace braid
