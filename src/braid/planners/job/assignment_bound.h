#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "braid/plan/totals.h"
#include "braid/planners/job/chain_job.h"
#include "braid/planners/job/configuration.h"
#include "braid/planners/job/layer_table.h"
#include "braid/planners/job/space.h"

namespace braid {

// What no assignment of layers to stages can be faster than.

/// Whether only some assignments of layers to stages are tried (docs/design.md, "braid").
inline bool leaves_assignments_out(const ChainJob& chain, const Configuration& configuration) {
  return configuration.pp > 1 && !chain.dealt_evenly &&
         configuration.schedule != ScheduleKind::one_f_one_b;
}

/// A lower bound on the iteration time of any partition of the layers under this configuration, in
/// O(1) once the table is there.
double configuration_bound_s(const ChainJob& chain, LayerTables& tables,
                             const Configuration& configuration);

/// ZeRO stages above 1 have stage 1's collectives, wherever these are.
inline Zero zero_around(Zero zero) { return std::min(zero, Zero::optimizer); }

/// For each kind of layer, what the stage that has most of them synchronises and updates around an
/// iteration, in one piece: nothing takes less. `context` is sharded as its configuration's state
/// is around an iteration (zero_around()).
void fill_fullest_syncs(const LayerTable& table, int stages, const DataParallelContext& context,
                        std::vector<StageSync>& syncs);

/// A lower bound on the iteration time of any partition of the layers: all that the stage that has
/// most layers of a kind does, collectives being hidden behind as much of its passes as can be.
/// Other layers on that stage add no less to its passes than they can hide. `syncs`:
/// its fill_fullest_syncs(). Cost: O(kinds of layers).
double fullest_load_s(const LayerTable& table, const Configuration& configuration,
                      std::span<const StageSync> syncs);

/// A lower bound on the iteration time of every configuration with the degrees of `split`, one of
/// these micro-batch sizes and one of these forms: all stages together have all passes and the
/// whole optimizer to do, and one of them its fullest_load_s(). Infinite when there is no size.
double split_bound_s(const ChainJob& chain, LayerTables& tables, const Configuration& split,
                     std::int64_t global_batch, std::span<const int> micro_batches,
                     std::span<const TensorSharding> forms);

/// configuration_bound_s() for 1F1B where `path_s` is the least path (partition_one_f_one_b): that
/// bounds only stages of which each hands over to the next.
double path_bound_s(const ChainJob& chain, LayerTables& tables, const Configuration& configuration,
                    double path_s);

/// What each parameter of a stage adds to its optimizer step at least.
struct OptimizerShare {
  double s_per_dense_parameter = 0, s_per_expert_parameter = 0;
  double all_s = 0;  ///< Of all the model's parameters.
};
OptimizerShare optimizer_share(const ChainJob& chain, const LayerTable& table,
                               const Configuration& configuration);

/// Passes and optimizer of the stage that has most of both, at its least over all partitions, which
/// `ends` shows; memory ignored. A stage's optimizer follows all of its passes, so that nothing is
/// faster. Cost: O(layers) per bound tried.
double least_load_s(const LayerTable& table, const Configuration& configuration,
                    const OptimizerShare& optimizer, Ends& ends);

}  // namespace braid
