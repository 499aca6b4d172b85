#pragma once

#include <functional>
#include <optional>

namespace braid {

/// The least `remainder` of all solutions whose bottleneck is at most a threshold, and the
/// bottleneck of the solution that attains it.
struct ThresholdAnswer {
  double remainder = 0;
  double bottleneck = 0;
};

/// A problem with the objective weight · bottleneck + remainder that is easy once the bottleneck
/// has a ceiling.
struct ThresholdProblem {
  /// nullopt when nothing stays below the threshold. Raising it never makes `remainder` larger.
  std::function<std::optional<ThresholdAnswer>(double threshold)> solve;
  /// The least value above `value` that a bottleneck can have; infinity when there is none.
  std::function<double(double value)> next_above;
  double least = 0;  ///< No bottleneck is smaller.
};

/// The bottleneck at which weight · bottleneck + remainder is least: an exact search that halves
/// intervals of thresholds and drops those whose lower bound, weight · (lowest threshold) +
/// (remainder at the highest), is no better than the best found (by more than a 1e-13th of it).
/// Solving once more at this threshold gives the optimum. nullopt when there is no solution at any
/// threshold. Precondition: weight ≥ 0.
std::optional<double> best_bottleneck(const ThresholdProblem& problem, double weight);

}  // namespace braid
