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
  std::vector<std::size_t> rows;      ///< Of each run, its index in the list they were taken from.
};

/// The runs that can be predicted, by chip, in the order of the chips' names.
std::vector<CalibrationRuns> runs_by_chip(const std::vector<MeasuredRun>& runs);

/// Fits the figures of one chip to runs on it (at least one), drawn to the catalogue's (fit.h).
ChipCalibration calibrate_chip(const CalibrationRuns& runs);

}  // namespace braid
