#include "braid/validate/fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "braid/base/parallel.h"

namespace braid {
namespace {

struct FittedFigure {
  double Achieved::*field;
  double least, most;  ///< Bounds.
  double spread;       ///< How far, as a logarithm, the catalogue may well be off.
};
constexpr std::array kFitted = {FittedFigure{&Achieved::matmul, 0.3, 0.98, 0.3},
                                FittedFigure{&Achieved::attention, 0.1, 0.9, 0.5},
                                FittedFigure{&Achieved::memory, 0.3, 0.98, 0.3},
                                FittedFigure{&Achieved::kernel_launch_s, 5e-7, 2e-5, 0.7},
                                FittedFigure{&Achieved::host_operator_s, 1e-6, 2e-4, 1.5},
                                FittedFigure{&Achieved::overlap_loss, 0.02, 0.5, 0.5},
                                FittedFigure{&Achieved::intra_node, 0.15, 1, 0.3},
                                FittedFigure{&Achieved::inter_node, 0.1, 1, 0.2},
                                FittedFigure{&Achieved::narrow_matmul, 0.2, 0.98, 0.3}};
constexpr std::size_t kCount = kFitted.size();
constexpr std::size_t kHost = 4;
static_assert(kFitted[kHost].field == &Achieved::host_operator_s);
/// A host that shows in every run of small kernels.
constexpr double kSlowHost = 100e-6;
/// A step that leaves more of the cost is the last.
constexpr double kConverged = 1 - 1e-3;
/// Step of slopes, as a logarithm.
constexpr double kDifference = 0.03;
using Vector = std::array<double, kCount>;
using Matrix = std::array<Vector, kCount>;

/// Weight of what the catalogue says against one dataset.
constexpr double kPriorWeight = 0.002;
/// Residuals beyond this count by their size, not its square.
constexpr double kLargeResidual = 0.1;

double& of(Achieved& fitted, std::size_t i) { return fitted.*kFitted[i].field; }
double of(const Achieved& fitted, std::size_t i) { return fitted.*kFitted[i].field; }

/// Zero means that there is no such effect, and stays.
bool may_be_none(std::size_t i) {
  return kFitted[i].field == &Achieved::inter_node ||
         kFitted[i].field == &Achieved::host_operator_s ||
         kFitted[i].field == &Achieved::narrow_matmul ||
         kFitted[i].field == &Achieved::overlap_loss;
}

Achieved bounded(Achieved fitted) {
  for (std::size_t i = 0; i < kCount; ++i) {
    if (of(fitted, i) <= 0 && may_be_none(i)) continue;
    of(fitted, i) = std::clamp(of(fitted, i), kFitted[i].least, kFitted[i].most);
  }
  return fitted;
}

/// Solves a · x = b, a symmetric and positive definite, by Cholesky's method.
Vector solve(Matrix a, Vector b) {
  for (std::size_t j = 0; j < kCount; ++j) {
    for (std::size_t k = 0; k < j; ++k) a[j][j] -= a[j][k] * a[j][k];
    a[j][j] = std::sqrt(std::max(a[j][j], 1e-300));
    for (std::size_t i = j + 1; i < kCount; ++i) {
      for (std::size_t k = 0; k < j; ++k) a[i][j] -= a[i][k] * a[j][k];
      a[i][j] /= a[j][j];
    }
  }
  for (std::size_t i = 0; i < kCount; ++i) {
    for (std::size_t k = 0; k < i; ++k) b[i] -= a[i][k] * b[k];
    b[i] /= a[i][i];
  }
  for (std::size_t i = kCount; i-- > 0;) {
    for (std::size_t k = i + 1; k < kCount; ++k) b[i] -= a[k][i] * b[k];
    b[i] /= a[i][i];
  }
  return b;
}

double square(double x) { return x * x; }

}  // namespace

Fit::Fit(const FitRuns& runs, const Achieved* prior) : runs_(runs.runs), weights_(runs_.size()) {
  std::map<std::string, double> sizes;
  for (const std::string& dataset : runs.datasets) ++sizes[dataset];
  for (std::size_t i = 0; i < runs_.size(); ++i) weights_[i] = 1 / sizes[runs.datasets[i]];
  // Clusters of one chip may differ in their networks; what is fitted is the same for all.
  prior_ = bounded(achieved_of(runs_.front()->system));
  for (const PreparedRun* run : runs_) {
    if (prior_.inter_node <= 0) prior_.inter_node = achieved_of(run->system).inter_node;
  }
  for (std::size_t i = 0; prior != nullptr && i < kCount; ++i) {
    if (of(prior_, i) > 0) of(prior_, i) = of(*prior, i);
  }
}

std::vector<double> Fit::residuals(const Achieved& figures) const {
  std::vector<double> result(runs_.size());
  parallel_for(runs_.size(), [&](std::size_t i) {
    System system = runs_[i]->system;
    apply(figures, system);
    result[i] = std::log(metrics_of(*runs_[i], system).iteration_time_s / runs_[i]->measured_s);
  });
  return result;
}

double Fit::cost(const Achieved& figures, const std::vector<double>& residuals) const {
  double sum = 0;
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    const double r = std::abs(residuals[i]);
    sum += weights_[i] * (r <= kLargeResidual ? r * r : kLargeResidual * (2 * r - kLargeResidual));
  }
  for (std::size_t p = 0; p < kCount; ++p) sum += kPriorWeight * square(drawn(figures, p));
  return sum;
}

double Fit::told_of_host(const Achieved& figures) const {
  if (figures.host_operator_s <= 0) return 0;
  Achieved moved = figures;
  moved.host_operator_s *= std::exp(-kDifference);
  const std::vector<double> before = residuals(figures), after = residuals(moved);
  double told = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    told += weights_[i] * square((after[i] - before[i]) / kDifference);
  }
  return told / (told + kPriorWeight / square(kFitted[kHost].spread));
}

Achieved Fit::best() const {
  const Descent near = descend(prior_);
  if (prior_.host_operator_s <= 0) return near.figures;
  Achieved start = prior_;
  start.host_operator_s = std::max(start.host_operator_s, kSlowHost);
  const Descent far = descend(start);
  return far.cost < near.cost ? far.figures : near.figures;
}

Fit::Descent Fit::descend(Achieved best) const {
  constexpr int kMostSteps = 12;
  std::vector<double> residual = residuals(best);
  double best_cost = cost(best, residual);
  double damping = 0.01;
  for (int step = 0; step < kMostSteps; ++step) {
    Slopes slopes(kCount);
    for (std::size_t p = 0; p < kCount; ++p) {
      Achieved moved = best;
      const bool up = of(best, p) * std::exp(kDifference) <= kFitted[p].most;
      of(moved, p) *= std::exp(up ? kDifference : -kDifference);
      slopes[p] = residuals(moved);
      for (std::size_t i = 0; i < residual.size(); ++i) {
        slopes[p][i] = (slopes[p][i] - residual[i]) / (up ? kDifference : -kDifference);
      }
    }
    const double before = best_cost;
    for (int attempt = 0; attempt < 4; ++attempt) {
      const Achieved moved = bounded(stepped(best, residual, slopes, damping));
      std::vector<double> moved_residual = residuals(moved);
      const double moved_cost = cost(moved, moved_residual);
      if (moved_cost < best_cost) {
        best = moved;
        best_cost = moved_cost;
        residual = std::move(moved_residual);
        damping = std::max(1e-4, damping / 3);
        break;
      }
      damping *= 6;
    }
    if (best_cost > before * kConverged) break;
  }
  return {best, best_cost};
}

double Fit::drawn(const Achieved& figures, std::size_t p) const {
  if (of(prior_, p) <= 0) return 0;
  return std::log(of(figures, p) / of(prior_, p)) / kFitted[p].spread;
}

Achieved Fit::stepped(const Achieved& from, const std::vector<double>& residual,
                      const Slopes& slopes, double damping) const {
  Matrix a{};
  Vector b{};
  for (std::size_t i = 0; i < residual.size(); ++i) {
    const double size = std::abs(residual[i]);
    const double weight = weights_[i] * (size <= kLargeResidual ? 1 : kLargeResidual / size);
    for (std::size_t p = 0; p < kCount; ++p) {
      b[p] -= weight * slopes[p][i] * residual[i];
      for (std::size_t q = 0; q < kCount; ++q) a[p][q] += weight * slopes[p][i] * slopes[q][i];
    }
  }
  for (std::size_t p = 0; p < kCount; ++p) {
    b[p] -= kPriorWeight * drawn(from, p) / kFitted[p].spread;
    a[p][p] += kPriorWeight / square(kFitted[p].spread);
    a[p][p] *= 1 + damping;
  }
  const Vector step = solve(a, b);
  Achieved moved = from;
  for (std::size_t p = 0; p < kCount; ++p) {
    of(moved, p) *= std::exp(std::clamp(step[p], -0.5, 0.5));
  }
  return moved;
}

double mean_error(const std::vector<double>& residuals) {
  double sum = 0;
  for (const double residual : residuals) sum += std::abs(std::exp(residual) - 1);
  return sum / static_cast<double>(residuals.size());
}

Achieved mean_figures(const std::vector<Achieved>& fits, const Achieved& other,
                      const Achieved& own) {
  if (fits.empty()) return other;
  Achieved mean;
  for (std::size_t i = 0; i < kCount; ++i) {
    if (of(own, i) <= 0) continue;
    double sum = 0;
    for (const Achieved& fit : fits) sum += std::log(of(fit, i) > 0 ? of(fit, i) : of(other, i));
    of(mean, i) = std::exp(sum / static_cast<double>(fits.size()));
  }
  return mean;
}

}  // namespace braid
