#pragma once

#include <string>

#include "braid/plan/plan.h"
#include "braid/validate/measured_run.h"

namespace braid {

/// How a run was split, or why that is not known.
struct RunParallelism {
  Parallelism parallel;
  Precision precision;
  bool half_recompute = false;  ///< recomputes_every_second().
  std::string reason;           ///< Empty when it is known.
};

/// Reads a run's degrees, batch, schedule, sharding, recomputation and precision. Degrees that are
/// not said are 1, data parallelism is what is left of the devices, a micro-batch that is not said
/// is one sample (without a pipeline: all that a rank has, which prepare() may cut); the rest is
/// the what the trainer usually does (run_trainer.h). `layers` is the number of blocks to
/// interleave.
RunParallelism parallelism_of(const MeasuredRun& run, std::int64_t layers);

}  // namespace braid
