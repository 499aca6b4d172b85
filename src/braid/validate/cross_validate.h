#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "braid/validate/calibrate.h"

namespace braid {

/// How far off the runs of a dataset are with figures that were fitted without it.
struct LeftOut {
  std::string dataset;
  std::size_t runs = 0;
  double mape = 0, median_ape = 0, bias = 0, worst = 0;  ///< As in Accuracy.
  std::size_t by_analogy = 0;     ///< Of the runs, on chips that no other dataset has.
  std::vector<double> errors;     ///< Predicted / measured - 1 of each.
  std::vector<std::size_t> rows;  ///< CalibrationRuns::rows of each.
  /// With figures fitted to all others and a dozen of its own, evenly picked, and drawn to those of
  /// chips most alike where a chip has no others: of the runs that were not picked. Negative when
  /// there are fewer than two dozen.
  double mape_dozen = -1;
  double mape_fitted = 0;  ///< With figures fitted to all others and all of its own.
  double mape_alone = 0;   ///< With figures fitted to nothing else.
};

/// Leaves each dataset out in turn, in the order of their names. Fits begin at, and are drawn to,
/// the same round figures for every chip, so nothing of the dataset comes in through the catalogue;
/// a chip without other runs takes the geometric mean of what was fitted to the chips most alike:
/// that differ in memory alone, else of its generation (the same narrowest format), else with a
/// host that issues operators as it has, or without; where none is, the round figures. Where the
/// catalogue says that a chip has no such effect (0), it keeps that. Deterministic. Cost: some ten
/// thousand predictions for each dataset.
std::vector<LeftOut> cross_validate(const std::vector<CalibrationRuns>& chips);

}  // namespace braid
