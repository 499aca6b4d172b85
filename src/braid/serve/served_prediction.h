#pragma once

#include <map>
#include <memory>
#include <optional>
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
  /// With figures other than the engine's own where they are given.
  ServedPrediction predict(std::size_t row, const EngineFigures* figures = nullptr) const;

 private:
  struct Run;
  struct Shared;
  std::vector<ServedRow> rows_;
  std::unique_ptr<Shared> shared_;
  std::vector<Run> runs_;
};

/// The model that a path as "deepseek-ai/DeepSeek-R1" speaks of, as load_served_model() takes it;
/// nullopt: unknown.
std::optional<std::string> served_name_of(std::string_view model_path);
/// The cluster that "h100_sxm" speaks of, as load_system() takes it; nullopt: unknown.
std::optional<std::string> served_cluster_of(std::string_view system);

}  // namespace braid
