#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/plan/outcome.h"
#include "braid/planners/job/job.h"

namespace braid {

/// A configuration as somebody states it: nothing is left to search.
struct StatedConfiguration {
  /// dp 0: what the other degrees leave of the devices. num_micro_batches follows from the batch.
  Parallelism parallel;
  /// Layers of each chunk in model order, [pp · vp]; empty: dealt out as trainers do.
  std::vector<std::int32_t> layers;
};

/// A stated configuration as a plan, with what the simulator and the verifier say of it.
struct StatedPlan {
  Candidate candidate;
  std::string misfit;  ///< What memory it lacks and where; empty: it fits.
  bool fits() const { return misfit.empty(); }
};

/// The plan of a job, which has a graph, in this configuration, run by the job's trainer within
/// what `can` says that it can be told. Throws Error naming the option where the model, the system,
/// the batch or the trainer does not allow it. Too little memory is no error. Cost: as
/// direct_plan() and a simulation; `checked` also puts it to verify(), which reads every pass.
///
///     StatedPlan mine = stated_plan(job, system, can, {.parallel = {.tp = 8, .pp = 4, .dp = 2}});
///     mine.candidate.metrics.iteration_time_s;
StatedPlan stated_plan(const Job& job, const System& system, const TrainerLimits& can,
                       const StatedConfiguration& stated, bool checked = true);

/// A plan as it is, whatever forms its stages have. Throws Error for what the verifier has against
/// it but for memory.
StatedPlan stated_as_planned(const Plan& plan);

/// The layers of each chunk where `counts` has the transformer blocks of each: the layers before
/// the first block go to the first chunk, those behind the last to the last. Counts that sum up to
/// all layers stay as they are. Throws Error naming `option` for other sums, numbers of chunks and
/// chunks without a layer.
std::vector<std::int32_t> layers_of_counts(const std::vector<std::int64_t>& counts,
                                           const Graph& graph, std::int64_t chunks,
                                           const std::string& option);

}  // namespace braid
