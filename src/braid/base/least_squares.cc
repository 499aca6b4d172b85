#include "braid/base/least_squares.h"

#include <algorithm>
#include <cmath>

namespace braid {
namespace {

using Matrix = std::vector<std::vector<double>>;

constexpr double kDifference = 0.03;
constexpr double kLongestStep = 0.5;

double square(double x) { return x * x; }

/// Solves a · x = b, a symmetric and positive definite, by Cholesky's method.
std::vector<double> solve(Matrix a, std::vector<double> b) {
  const std::size_t count = b.size();
  for (std::size_t j = 0; j < count; ++j) {
    for (std::size_t k = 0; k < j; ++k) a[j][j] -= a[j][k] * a[j][k];
    a[j][j] = std::sqrt(std::max(a[j][j], 1e-300));
    for (std::size_t i = j + 1; i < count; ++i) {
      for (std::size_t k = 0; k < j; ++k) a[i][j] -= a[i][k] * a[j][k];
      a[i][j] /= a[j][j];
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t k = 0; k < i; ++k) b[i] -= a[i][k] * b[k];
    b[i] /= a[i][i];
  }
  for (std::size_t i = count; i-- > 0;) {
    for (std::size_t k = i + 1; k < count; ++k) b[i] -= a[k][i] * b[k];
    b[i] /= a[i][i];
  }
  return b;
}

double drawn(const FreeFigure& figure, double value) {
  return figure.prior <= 0 || value <= 0 ? 0 : std::log(value / figure.prior) / figure.spread;
}

double cost_of(const LeastSquares& problem, const std::vector<double>& figures,
               const std::vector<double>& residuals) {
  double sum = 0;
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    sum += problem.weights[i] * problem.loss.cost(residuals[i]);
  }
  for (std::size_t p = 0; p < figures.size(); ++p) {
    sum += problem.prior_weight * square(drawn(problem.figures[p], figures[p]));
  }
  return sum;
}

std::vector<SlopeColumn> differences(const LeastSquares& problem,
                                     const std::vector<double>& figures,
                                     const std::vector<double>& residuals) {
  std::vector<SlopeColumn> slopes(figures.size());
  for (std::size_t p = 0; p < figures.size(); ++p) {
    const double step = slope_step(problem.figures[p], figures[p]);
    std::vector<double> moved = figures;
    moved[p] *= std::exp(step);
    slopes[p].values = problem.residuals(moved);
    for (std::size_t i = 0; i < residuals.size(); ++i) {
      slopes[p].values[i] = (slopes[p].values[i] - residuals[i]) / step;
    }
  }
  return slopes;
}

/// The normal equations of a step.
struct Normal {
  Matrix a;
  std::vector<double> b;
};

Normal normal_equations(const LeastSquares& problem, const std::vector<double>& figures,
                        const std::vector<double>& residuals,
                        const std::vector<SlopeColumn>& slopes) {
  const std::size_t count = figures.size();
  Normal normal{Matrix(count, std::vector<double>(count)), std::vector<double>(count)};
  std::vector<double> weights(residuals.size());
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    weights[i] = problem.weights[i] * problem.loss.weight(residuals[i]);
  }
  for (std::size_t p = 0; p < count; ++p) {
    const SlopeColumn& column = slopes[p];
    const std::size_t end = column.first + column.values.size();
    for (std::size_t i = column.first; i < end; ++i) {
      normal.b[p] -= weights[i] * column.values[i - column.first] * residuals[i];
    }
    for (std::size_t q = 0; q <= p; ++q) {
      const SlopeColumn& other = slopes[q];
      const std::size_t first = std::max(column.first, other.first);
      const std::size_t last = std::min(end, other.first + other.values.size());
      double sum = 0;
      for (std::size_t i = first; i < last; ++i) {
        sum += weights[i] * column.values[i - column.first] * other.values[i - other.first];
      }
      normal.a[p][q] = normal.a[q][p] = sum;
    }
    const FreeFigure& figure = problem.figures[p];
    normal.b[p] -= problem.prior_weight * drawn(figure, figures[p]) / figure.spread;
    normal.a[p][p] += problem.prior_weight / square(figure.spread);
  }
  return normal;
}

/// Takes out of the equations what is at a bound and would leave it.
void hold(const std::vector<FreeFigure>& bounds, const std::vector<double>& figures,
          Normal& normal) {
  for (std::size_t p = 0; p < figures.size(); ++p) {
    const bool leaves =
        normal.b[p] > 0 ? figures[p] >= bounds[p].most : figures[p] <= bounds[p].least;
    if (!leaves) continue;
    normal.b[p] = 0;
    for (std::size_t q = 0; q < figures.size(); ++q) {
      if (q != p) normal.a[p][q] = normal.a[q][p] = 0;
    }
  }
}

std::vector<double> stepped(const std::vector<double>& from, const Normal& normal, double damping) {
  Matrix a = normal.a;
  for (std::size_t p = 0; p < from.size(); ++p) a[p][p] *= 1 + damping;
  const std::vector<double> step = solve(std::move(a), normal.b);
  std::vector<double> moved = from;
  for (std::size_t p = 0; p < from.size(); ++p) {
    moved[p] *= std::exp(std::clamp(step[p], -kLongestStep, kLongestStep));
  }
  return moved;
}

}  // namespace

RobustLoss huber_loss(double large) {
  return {[large](double r) {
            const double size = std::abs(r);
            return size <= large ? r * r : large * (2 * size - large);
          },
          [large](double r) {
            const double size = std::abs(r);
            return size <= large ? 1 : large / size;
          }};
}

RobustLoss smooth_loss(double large) {
  return {[large](double r) { return 2 * square(large) * (std::sqrt(1 + square(r / large)) - 1); },
          [large](double r) { return 1 / std::sqrt(1 + square(r / large)); }};
}

std::vector<double> bounded(const std::vector<FreeFigure>& bounds, std::vector<double> figures) {
  for (std::size_t p = 0; p < figures.size(); ++p) {
    if (figures[p] > 0) figures[p] = std::clamp(figures[p], bounds[p].least, bounds[p].most);
  }
  return figures;
}

double slope_step(const FreeFigure& bounds, double figure) {
  return figure * std::exp(kDifference) <= bounds.most ? kDifference : -kDifference;
}

Descent descend(const LeastSquares& problem, std::vector<double> from,
                const DescentLimits& limits) {
  std::vector<double> best = std::move(from);
  std::vector<double> residual = problem.residuals(best);
  double best_cost = cost_of(problem, best, residual);
  double damping = 0.01;
  for (int step = 0; step < limits.most_steps; ++step) {
    const std::vector<SlopeColumn> slopes =
        problem.slopes ? problem.slopes(best, residual) : differences(problem, best, residual);
    Normal normal = normal_equations(problem, best, residual, slopes);
    if (limits.hold_at_bounds) hold(problem.figures, best, normal);
    const double before = best_cost;
    for (int attempt = 0; attempt < 4; ++attempt) {
      const std::vector<double> moved = bounded(problem.figures, stepped(best, normal, damping));
      std::vector<double> moved_residual = problem.residuals(moved);
      const double moved_cost = cost_of(problem, moved, moved_residual);
      if (moved_cost < best_cost) {
        best = moved;
        best_cost = moved_cost;
        residual = std::move(moved_residual);
        damping = std::max(1e-4, damping / 3);
        break;
      }
      damping *= 6;
    }
    if (best_cost > before * (1 - limits.converged)) break;
  }
  return {best, best_cost};
}

}  // namespace braid
