#include "braid/validate/run_errors.h"

#include <cmath>
#include <limits>

namespace braid {

Evidence evidence_of(const std::vector<MeasuredRun>& runs, const std::vector<LeftOut>& left_out) {
  const std::vector<Prediction> predictions = predict(runs);
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> unseen(runs.size(), kNone);
  for (const LeftOut& left : left_out) {
    for (std::size_t i = 0; i < left.rows.size(); ++i) {
      unseen[left.rows[i]] = -std::log1p(left.errors[i]);
    }
  }
  Evidence evidence;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Prediction& prediction = predictions[i];
    if (!prediction.predicted()) continue;
    RunError run;
    run.source = runs[i].dataset;
    run.model = runs[i].model;
    run.traits = prediction.traits;
    run.error = -std::log(prediction.ratio());
    run.left_out = std::isnan(unseen[i]) ? run.error : unseen[i];
    run.memory = prediction.measured_memory_bytes > 0;
    if (run.memory) {
      run.memory_error =
          std::log(prediction.measured_memory_bytes / prediction.metrics.peak_memory_bytes);
    }
    evidence.push_back(std::move(run));
  }
  return evidence;
}

}  // namespace braid
