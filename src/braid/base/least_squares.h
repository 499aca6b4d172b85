#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace braid {

/// A positive figure that is fitted on a logarithmic scale. One that is 0 (no such effect) stays 0.
struct FreeFigure {
  double least = 0, most = 0;  ///< Bounds.
  double prior = 0;            ///< What it is drawn to; 0: to nothing.
  double spread = 1;           ///< How far, as a logarithm, the prior may well be off.
};

/// How the residuals change with the logarithm of one figure: `values[i]` is of residual
/// `first + i`; the others do not depend on the figure.
struct SlopeColumn {
  std::size_t first = 0;
  std::vector<double> values;
};

/// What a residual costs and, for the next step, weighs: `cost` grows as `r²` near zero and more
/// slowly beyond, `weight` is `cost'(r) / 2 r`.
struct RobustLoss {
  std::function<double(double)> cost, weight;
};
/// `r²` up to `large`, its size alone beyond (Huber 1964).
RobustLoss huber_loss(double large);
/// `2 large² (√(1 + (r / large)²) - 1)`: as Huber's, without a corner.
RobustLoss smooth_loss(double large);

/// Least squares of residuals that depend on figures, each residual with its weight, each figure
/// drawn to its prior by `prior_weight · (log(figure / prior) / spread)²`.
struct LeastSquares {
  std::vector<FreeFigure> figures;
  std::vector<double> weights;  ///< By residual.
  double prior_weight = 0;
  RobustLoss loss;
  std::function<std::vector<double>(const std::vector<double>&)> residuals;
  /// By figure, at figures whose residuals are given. Empty: by differences of `residuals`.
  std::function<std::vector<SlopeColumn>(const std::vector<double>&, const std::vector<double>&)>
      slopes;
};

struct DescentLimits {
  int most_steps = 12;
  double converged = 1e-3;      ///< A step that takes less than this share of the cost is the last.
  bool hold_at_bounds = false;  ///< A figure at a bound that slopes beyond it does not move.
};

struct Descent {
  std::vector<double> figures;
  double cost = 0;
};

/// The descent from `from` by Levenberg and Marquardt's method. Deterministic. Cost: a step takes
/// one set of slopes, up to four of residuals and `residuals · figures²` operations, fewer where
/// columns of slopes are short.
///
///     LeastSquares problem = ...;
///     Descent fit = descend(problem, {1.0, 2.0}, {});
Descent descend(const LeastSquares& problem, std::vector<double> from, const DescentLimits& limits);

/// Moves figures within their bounds; those that are 0 stay.
std::vector<double> bounded(const std::vector<FreeFigure>& bounds, std::vector<double> figures);

/// The step of slopes by differences, as a logarithm: upwards unless that leaves the bounds.
double slope_step(const FreeFigure& bounds, double figure);

}  // namespace braid
