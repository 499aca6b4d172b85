#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "braid/system/system.h"
#include "braid/validate/predict.h"

namespace braid {

/// What calibration fits of a chip and the network around it: how near the machine comes to its
/// published figures. All are dimensionless but the two times.
struct Fitted {
  double matmul = 0, attention = 0, memory = 0;     ///< Efficiency's fractions.
  double kernel_launch_s = 0, host_operator_s = 0;  ///< Efficiency's times.
  double intra_node = 0;                            ///< NetworkLevel::efficiency inside the node.
  double inter_node = 0;  ///< NetworkLevel::efficiency of the first level above; 0: none.
};

struct ChipCalibration {
  std::string chip;
  std::size_t runs = 0;
  Fitted before, after;
  double mape_before = 0, mape_after = 0;  ///< Of the runs that were fitted.
};

/// Figures of a homogeneous system as Fitted, and the other way round.
Fitted fitted_of(const System& system);
void apply(const Fitted& fitted, System& system);

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

/// Mean error of a dataset's runs with figures that were fitted to the other datasets.
struct LeftOut {
  std::string dataset;
  std::size_t runs = 0;
  double mape = 0;
};

/// Leaves each dataset out in turn, in the order of their names; empty when there is only one.
std::vector<LeftOut> cross_validate(const CalibrationRuns& runs);

}  // namespace braid
