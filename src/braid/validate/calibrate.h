#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "braid/system/calibration.h"
#include "braid/validate/predict.h"

namespace braid {

struct ChipCalibration {
  std::string chip;
  std::size_t runs = 0;
  Achieved before, after;
  double mape_before = 0, mape_after = 0;  ///< Of the runs that were fitted.
};

/// Prepared runs on systems of one chip, which all can be predicted.
struct CalibrationRuns {
  std::string chip;
  std::vector<PreparedRun> runs;
  std::vector<std::string> datasets;  ///< Of each run.
};

/// The runs that can be predicted, by chip, in the order of the chips' names.
std::vector<CalibrationRuns> runs_by_chip(const std::vector<MeasuredRun>& runs);

/// Fits the figures of one chip to runs on it (at least one): least squares on logarithms of
/// predicted / measured by Levenberg and Marquardt's method, large residuals counted by their size
/// alone (Huber 1964), every dataset weighing the same however many rows it has. Each figure is
/// bounded and drawn weakly to what the catalogue says, so that runs which say nothing of it leave
/// it alone. Deterministic. Cost: some hundred predictions of each run.
ChipCalibration calibrate_chip(const CalibrationRuns& runs);

/// How far off the runs of a dataset are with figures that were fitted to all others.
struct LeftOut {
  std::string dataset;
  std::size_t runs = 0;
  double mape = 0, median_ape = 0, bias = 0, worst = 0;  ///< As in Accuracy.
  double mape_fitted = 0;  ///< With figures fitted to the dataset as well, from its chips' runs.
  std::size_t by_analogy = 0;  ///< Of the runs, on chips that no other dataset has.
  std::vector<double> errors;  ///< Predicted / measured - 1 of each.
};

/// Leaves each dataset out in turn, in the order of their names. Fits begin at, and are drawn to,
/// the same round figures for every chip, so nothing of the dataset comes in through the catalogue;
/// a chip without other runs takes the geometric mean of what was fitted to the other chips. Where
/// the catalogue says that a chip has no such effect (0), it keeps that. Cost: some ten thousand
/// predictions for each dataset.
std::vector<LeftOut> cross_validate(const std::vector<CalibrationRuns>& chips);

}  // namespace braid
