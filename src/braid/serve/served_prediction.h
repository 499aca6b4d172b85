#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "braid/serve/disaggregated.h"
#include "braid/serve/served_rows.h"

namespace braid {

/// What was predicted of a row, or why nothing was.
struct ServedPrediction {
  std::string reason;  ///< Empty: there is a prediction.
  ServingTimes times;
};

/// Rows with what predicting them takes: models, systems and kernels are read once, step models are
/// kept, so that predictions with other figures cost no more than their steps.
class ServedRuns {
 public:
  explicit ServedRuns(std::vector<ServedRow> rows);
  ~ServedRuns();
  ServedRuns(const ServedRuns&) = delete;
  ServedRuns& operator=(const ServedRuns&) = delete;

  const std::vector<ServedRow>& rows() const { return rows_; }
  /// Index of the row's engine in engine_catalogue(); negative: unknown.
  int engine_of(std::size_t row) const;
  /// What corrections of the row go by; empty for rows without a prediction.
  const CorrectedRuns& kind_of(std::size_t row) const;
  /// With the figures and corrections of the row's engine.
  ServedPrediction predict(std::size_t row) const;
  ServedPrediction predict(std::size_t row, const EngineFigures& figures,
                           const std::vector<EngineCorrection>& corrections) const;

 private:
  struct Run;
  struct Shared;
  Run run_of(const ServedRow& row) const;
  DisaggregatedService service_of(const ServedRow& row, const Engine& engine) const;
  std::vector<ServedRow> rows_;
  std::unique_ptr<Shared> shared_;
  std::vector<Run> runs_;
};

}  // namespace braid
