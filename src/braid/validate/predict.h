#pragma once

#include <optional>
#include <string>
#include <vector>

#include "braid/plan/outcome.h"
#include "braid/validate/measured_run.h"

namespace braid {

/// A run beside what braid says of it, or the reason why it says nothing.
struct Prediction {
  double measured_s = 0;             ///< Time of one iteration.
  double measured_memory_bytes = 0;  ///< 0: not measured.
  double bound_s = 0;                ///< LowerBound::time_s: no prediction is below it.
  Parallelism parallel;
  Metrics metrics;     ///< Of the plan that the row describes, by the simulator.
  std::string reason;  ///< Empty when the run is predicted.

  bool predicted() const { return reason.empty(); }
  /// Predicted over measured.
  double ratio() const { return metrics.iteration_time_s / measured_s; }
};

/// Predicts each run from nothing but what its row says: model_of, system_of, parallelism_of, then
/// direct_plan, estimated and simulated as every plan is. In the runs' order; deterministic. About
/// a millisecond a run.
std::vector<Prediction> predict(const std::vector<MeasuredRun>& runs);
Prediction predict(const MeasuredRun& run);

}  // namespace braid
