#include "braid/validate/fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "braid/base/least_squares.h"
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
/// Of the slope that tells what runs say of the host, as a logarithm.
constexpr double kDifference = 0.03;

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

std::vector<double> packed(const Achieved& figures) {
  std::vector<double> result(kCount);
  for (std::size_t i = 0; i < kCount; ++i) result[i] = of(figures, i);
  return result;
}

Achieved unpacked(const std::vector<double>& figures) {
  Achieved result;
  for (std::size_t i = 0; i < kCount; ++i) of(result, i) = figures[i];
  return result;
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
  LeastSquares problem;
  for (std::size_t i = 0; i < kCount; ++i) {
    problem.figures.push_back(
        {kFitted[i].least, kFitted[i].most, of(prior_, i), kFitted[i].spread});
  }
  problem.weights = weights_;
  problem.prior_weight = kPriorWeight;
  problem.loss = huber_loss(kLargeResidual);
  problem.residuals = [this](const std::vector<double>& figures) {
    return residuals(unpacked(figures));
  };
  const Descent near = descend(problem, packed(prior_), {});
  if (prior_.host_operator_s <= 0) return unpacked(near.figures);
  Achieved start = prior_;
  start.host_operator_s = std::max(start.host_operator_s, kSlowHost);
  const Descent far = descend(problem, packed(start), {});
  return unpacked(far.cost < near.cost ? far.figures : near.figures);
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
