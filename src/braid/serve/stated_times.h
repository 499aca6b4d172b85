#pragma once

#include "braid/serve/serving_plan.h"
#include "braid/serve/worker_memory.h"

namespace braid {

/// What a worker's fullest device has room for.
struct WorkerRoom {
  WorkerMemory memory;
  double request_bytes = 0;  ///< Cache of a request, in the mean over its life.
  double held = 0;           ///< Requests at once, all attention groups together.
  double missing_bytes = 0;  ///< What one request lacks; 0: it has room.
};

/// Room of a worker for requests of the job.
WorkerRoom worker_room(const WorkerPlan& of, const ServingJob& job);

/// What a stated service does.
struct StatedTimes {
  /// With its times and rate at the most requests within both targets, or `requests_per_s` 0 where
  /// even one request alone is not within them.
  ServingPlan plan;
  double sequences = 0;   ///< That decode at once on a worker then.
  WorkerRoom decode;      ///< Of aggregated workers, or of decode ones.
  WorkerRoom prefill;     ///< Of a disaggregated service.
  ServingTimes alone;     ///< One request on an idle worker.
  ServingTimes full;      ///< As many as a worker may run at once; of two kinds, TPOT alone.
  double full_batch = 0;  ///< Those.

  bool fits() const { return decode.missing_bytes == 0 && prefill.missing_bytes == 0; }
  bool holds_targets() const { return plan.requests_per_s > 0; }
};

/// Times of `stated`, whose own times do not count, by the arithmetic of plan_serving(): requests
/// at once are those of batch_sizes() and as many as the worker may run. Throws Error for layouts
/// that do not divide the model and what the chip lacks.
StatedTimes stated_times(const ServingPlan& stated, const ServingJob& job);

}  // namespace braid
