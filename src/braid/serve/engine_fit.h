#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "braid/serve/served_prediction.h"

namespace braid {

/// Relative errors of predictions of rows, |predicted / measured - 1|.
struct ServedErrors {
  std::size_t rows = 0, predicted = 0;
  double tpot_mean = 0, tpot_median = 0;
  double ttft_mean = 0, ttft_median = 0;
};

/// Of `rows` of `runs`; `predictions` are of all of them.
ServedErrors served_errors(const std::vector<ServedRow>& runs,
                           const std::vector<ServedPrediction>& predictions,
                           const std::vector<std::size_t>& rows);

/// What is fitted of an engine.
struct FittedEngine {
  EngineFigures figures;
  std::vector<EngineCorrection> corrections;
};

/// The figures and corrections of one engine that fit the rows best, in turns: figures by robust
/// least squares of the logarithms of TPOT and, with a third of the weight, of TTFT, drawn to where
/// fits begin; corrections by what is left, of a mode, of a mode and chip, of a mode and model, and
/// of a mode, chip, model and format, each nearer to 1 the fewer runs it has. A correction is the
/// median of measured over predicted times where each run counts by the square root of predicted
/// over measured: between the least logarithmic and the least relative error. Rows that have no
/// prediction do not count. Deterministic. Cost: some 1,000 predictions of each row.
FittedEngine fitted_engine(const ServedRuns& runs, const std::vector<std::size_t>& rows);

/// Into how many parts rows are dealt to see how far off rows are that nothing was fitted to.
inline constexpr std::size_t kConfigurationFolds = 5;

/// In which of `folds` parts a row is: rows of one configuration (model, precision, lengths,
/// system, engine, mode, degrees, workers) are in the same, whatever their batch or version.
std::size_t configuration_fold(const ServedRow& row, std::size_t folds);

/// Each row predicted with what is fitted to the rows of its engine in the other folds. Cost: a fit
/// a fold and engine.
std::vector<ServedPrediction> held_out_predictions(const ServedRuns& runs, std::size_t folds);

/// The sections `figures` and `corrections` of an engine's file.
std::string fitted_text(const FittedEngine& fitted, const std::string& source);

}  // namespace braid
