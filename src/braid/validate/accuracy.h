#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "braid/validate/measured_run.h"
#include "braid/validate/predict.h"

namespace braid {

/// How far predictions of a group of runs are off. Errors are shares of what was measured,
/// predicted / measured - 1; averages are over the predicted runs and 0 when there are none.
struct Accuracy {
  std::size_t runs = 0, predicted = 0;
  double mape = 0;            ///< Mean of |error|.
  double median_ape = 0;      ///< Median of |error|.
  double bias = 0;            ///< Mean error: above 0 when predictions are too long.
  double p90_ape = 0;         ///< Nine tenths of the runs are off by no more.
  double worst = 0;           ///< Error (with sign) of the run that is furthest off.
  std::size_t worst_run = 0;  ///< Its index.
  /// Mean of |error| when every run takes bound / e, with the one e that makes this least.
  double constant_efficiency = 0;
  double constant_efficiency_mape = 0;
  double bound_mape = 0;  ///< Mean of |error| when every run takes its bound.
  /// Rank correlation of predicted and measured times within families of runs that do the same work
  /// on the same machine, split in different ways: mean over families of four and more, weighted by
  /// their runs. 0 without such families (`ranked` = 0).
  double spearman = 0;
  /// How much longer than the best of its family the run took that is predicted to be the best, a
  /// share: mean over the same families, weighted alike.
  double regret = 0;
  std::size_t ranked = 0;       ///< Runs in such families.
  std::size_t memory_runs = 0;  ///< With a measured peak of memory.
  double memory_mape = 0, memory_bias = 0;
  /// Of the runs with an interval, the share whose measured time lies within, and how wide the
  /// intervals are, a share of the predicted time.
  double covered = 0, width = 0;
  std::size_t intervals = 0;  ///< How many have one.
  double memory_covered = 0;  ///< The same of peaks of memory.
  std::size_t memory_intervals = 0;
  std::size_t predicted_below_bound = 0;  ///< Must be 0.
  /// Measured to be faster than the physical bound: a wrong row, or a wrong bound.
  std::vector<std::size_t> measured_below_bound;
};

/// Accuracy over the runs of these indices.
Accuracy accuracy_of(const std::vector<MeasuredRun>& runs,
                     const std::vector<Prediction>& predictions,
                     std::span<const std::size_t> indices);

struct AccuracyGroup {
  std::vector<std::string> values;  ///< Of the columns that the runs are grouped by.
  std::vector<std::size_t> runs;    ///< Indices, ascending.
  Accuracy accuracy;
};

/// Groups runs by columns (group_value), in the order in which groups first occur.
std::vector<AccuracyGroup> accuracy_by(const std::vector<MeasuredRun>& runs,
                                       const std::vector<Prediction>& predictions,
                                       const std::vector<std::string>& columns);

/// Indices of the predicted runs that are furthest off, at most `count`, worst first; of equals the
/// first.
std::vector<std::size_t> furthest_off(const std::vector<Prediction>& predictions,
                                      std::size_t count);

/// Lines of the runs that are not predicted, by the reason.
std::map<std::string, std::vector<int>> unpredicted_lines(
    const std::vector<MeasuredRun>& runs, const std::vector<Prediction>& predictions);

/// Ascending numbers as "2, 5-9, 12".
std::string line_ranges(const std::vector<int>& lines);

/// The e in (0, ∞) for which the mean of |bound/e / measured - 1| is least, and that mean. Exact:
/// a weighted median. Lists are of equal length, at least one, positive.
std::pair<double, double> best_constant_efficiency(std::span<const double> bounds,
                                                   std::span<const double> measured);

}  // namespace braid
