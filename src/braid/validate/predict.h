#pragma once

#include <optional>
#include <string>
#include <vector>

#include "braid/graph/graph.h"
#include "braid/plan/outcome.h"
#include "braid/plan/trainer.h"
#include "braid/system/calibration.h"
#include "braid/system/system.h"
#include "braid/trust/interval.h"
#include "braid/trust/job_traits.h"
#include "braid/validate/measured_run.h"

namespace braid {

/// A run as it is to be predicted, from nothing but what its row says, or the reason why it cannot
/// be.
struct PreparedRun {
  Graph graph;
  System system;
  Parallelism parallel;
  Precision precision;
  std::int64_t global_batch = 1;
  std::vector<std::int32_t> stage_layers;  ///< MeasuredRun::stage_layers.
  Trainer trainer;
  double measured_s = 0;             ///< Time of one iteration.
  double measured_memory_bytes = 0;  ///< 0: not measured.
  /// recomputes_every_second(): time and memory are halfway between those without recomputation,
  /// which `parallel` has, and with full.
  bool half_recompute = false;
  bool frozen_weights = false;  ///< Only adapters are trained: no gradients of the weights.
  double bound_s = 0;           ///< LowerBound::time_s: no prediction is below it.
  std::string reason;           ///< Empty when the run can be predicted.
};

/// model_of, system_of, parallelism_of, measured_time_s. Deterministic; about a millisecond.
PreparedRun prepare(const MeasuredRun& run);

/// The plan that the run describes (direct_plan), on `system`. Throws Error when it cannot run so.
Plan plan_of(const PreparedRun& run, const System& system);

/// Time and memory of the plan that the run describes (direct_plan), estimated and simulated on
/// `system` as every plan is. Throws Error when it cannot run so.
Metrics metrics_of(const PreparedRun& run, const System& system);

/// A run beside what braid says of it, or the reason why it says nothing.
struct Prediction {
  double measured_s = 0;
  double measured_memory_bytes = 0;
  double bound_s = 0;
  std::string chip;  ///< Catalogue name; of several types joined by " + ".
  Parallelism parallel;
  Metrics metrics;
  JobTraits traits;  ///< Of the plan, where the run is predicted.
  /// As a plan has it, but a run of the evidence that is this very one does not count.
  std::optional<ErrorInterval> interval, memory_interval;
  std::string reason;

  bool predicted() const { return reason.empty(); }
  /// Predicted over measured.
  double ratio() const { return metrics.iteration_time_s / measured_s; }
  /// Whether the measured time lies in the interval.
  bool is_inside() const {
    return interval && 1 / ratio() >= interval->low && 1 / ratio() <= interval->high;
  }
  /// The same of the peak of memory.
  bool is_memory_inside() const {
    const double share = measured_memory_bytes / metrics.peak_memory_bytes;
    return memory_interval && share >= memory_interval->low && share <= memory_interval->high;
  }
};

/// With the calibration's figures in place of the catalogue's.
Prediction predict(const MeasuredRun& run, const Calibration& calibration = {});

/// Each run, in their order; deterministic.
std::vector<Prediction> predict(const std::vector<MeasuredRun>& runs,
                                const Calibration& calibration = {});

}  // namespace braid
