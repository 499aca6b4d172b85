#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "braid/system/calibration.h"
#include "braid/validate/predict.h"

namespace braid {

/// Runs on systems of one chip, all of which can be predicted, and their datasets.
struct FitRuns {
  std::vector<const PreparedRun*> runs;
  std::vector<std::string> datasets;
};

/// Least squares (base/least_squares.h) on logarithms of predicted / measured, large residuals
/// counted by their size alone (Huber 1964), every dataset weighing the same however many rows it
/// has. Each figure is bounded and drawn weakly to a prior, so that runs which say nothing of it
/// leave it alone.
class Fit {
 public:
  /// `runs`: at least one, which must outlive this. `prior`: what to begin at and be drawn to in
  /// place of the catalogue's figures; those that the catalogue has as 0 (no such effect) stay 0.
  explicit Fit(const FitRuns& runs, const Achieved* prior = nullptr);

  const Achieved& prior() const { return prior_; }
  /// log(predicted / measured) of each run.
  std::vector<double> residuals(const Achieved& figures) const;
  /// The best figures of two descents. A host that is fast enough never shows, and then there is no
  /// slope towards a slower one: the second begins with one that shows. Deterministic. Cost: some
  /// hundred predictions of each run.
  Achieved best() const;
  /// How far the runs, not the prior, tell what `figures` have for the host's time: 0 to 1.
  double told_of_host(const Achieved& figures) const;

 private:
  const std::vector<const PreparedRun*>& runs_;
  std::vector<double> weights_;
  Achieved prior_;
};

/// Mean of predicted / measured - 1 without sign. At least one residual.
double mean_error(const std::vector<double>& residuals);

/// Figure by figure the geometric mean of `fits`, or of `other` where a fit has none (0); 0 where
/// `own` has none. `other` when there are no fits.
Achieved mean_figures(const std::vector<Achieved>& fits, const Achieved& other,
                      const Achieved& own);

}  // namespace braid
