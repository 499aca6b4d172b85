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

/// The figures of one engine that fit the rows best: robust least squares of the logarithms of TPOT
/// and, with a third of the weight, of TTFT, drawn to where fits begin. Rows that have no
/// prediction do not count. Deterministic. Cost: some 150 predictions of each row.
EngineFigures fitted_figures(const ServedRuns& runs, const std::vector<std::size_t>& rows);

/// The section `figures` of an engine's file.
std::string figures_text(const EngineFigures& figures, const std::string& source);

}  // namespace braid
