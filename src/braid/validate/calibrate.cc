#include "braid/validate/calibrate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "braid/base/error.h"
#include "braid/base/parallel.h"

namespace braid {
namespace {

struct Figure {
  double Fitted::*field;
  double least, most;  ///< Bounds.
  double spread;       ///< How far, as a logarithm, the catalogue may well be off.
};
constexpr std::array kFigures = {Figure{&Fitted::matmul, 0.3, 0.98, 0.3},
                                 Figure{&Fitted::attention, 0.1, 0.9, 0.5},
                                 Figure{&Fitted::memory, 0.3, 0.98, 0.3},
                                 Figure{&Fitted::kernel_launch_s, 5e-7, 2e-5, 0.7},
                                 Figure{&Fitted::host_operator_s, 1e-6, 2e-4, 1.5},
                                 Figure{&Fitted::intra_node, 0.15, 1, 0.5},
                                 Figure{&Fitted::inter_node, 0.1, 1, 0.7}};
constexpr std::size_t kCount = kFigures.size();
using Vector = std::array<double, kCount>;
using Matrix = std::array<Vector, kCount>;

/// Weight of what the catalogue says against one dataset.
constexpr double kPriorWeight = 0.002;
/// Residuals beyond this count by their size, not its square.
constexpr double kLargeResidual = 0.1;

double& of(Fitted& fitted, std::size_t i) { return fitted.*kFigures[i].field; }
double of(const Fitted& fitted, std::size_t i) { return fitted.*kFigures[i].field; }

Fitted bounded(Fitted fitted) {
  for (std::size_t i = 0; i < kCount; ++i) {
    if (of(fitted, i) <= 0 && kFigures[i].field == &Fitted::inter_node) continue;
    of(fitted, i) = std::clamp(of(fitted, i), kFigures[i].least, kFigures[i].most);
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

class Fit {
 public:
  Fit(const std::vector<const PreparedRun*>& runs, const std::vector<std::string>& datasets)
      : runs_(runs), weights_(runs.size()) {
    std::map<std::string, double> sizes;
    for (const std::string& dataset : datasets) ++sizes[dataset];
    for (std::size_t i = 0; i < runs.size(); ++i) weights_[i] = 1 / sizes[datasets[i]];
    // Clusters of one chip may differ in their networks; what is fitted is the same for all.
    prior_ = bounded(fitted_of(runs.front()->system));
    for (const PreparedRun* run : runs) {
      if (prior_.inter_node <= 0) prior_.inter_node = fitted_of(run->system).inter_node;
    }
  }

  const Fitted& prior() const { return prior_; }

  /// log(predicted / measured) of each run.
  std::vector<double> residuals(const Fitted& fitted) const {
    std::vector<double> result(runs_.size());
    parallel_for(runs_.size(), [&](std::size_t i) {
      System system = runs_[i]->system;
      apply(fitted, system);
      result[i] = std::log(metrics_of(*runs_[i], system).iteration_time_s / runs_[i]->measured_s);
    });
    return result;
  }

  double cost(const Fitted& fitted, const std::vector<double>& residuals) const {
    double sum = 0;
    for (std::size_t i = 0; i < residuals.size(); ++i) {
      const double r = std::abs(residuals[i]);
      sum +=
          weights_[i] * (r <= kLargeResidual ? r * r : kLargeResidual * (2 * r - kLargeResidual));
    }
    for (std::size_t p = 0; p < kCount; ++p) sum += kPriorWeight * square(drawn(fitted, p));
    return sum;
  }

  Fitted run() const {
    constexpr int kMostSteps = 12;
    constexpr double kDifference = 0.03;
    Fitted best = prior_;
    std::vector<double> residual = residuals(best);
    double best_cost = cost(best, residual);
    double damping = 0.01;
    for (int step = 0; step < kMostSteps; ++step) {
      std::array<std::vector<double>, kCount> slopes;
      for (std::size_t p = 0; p < kCount; ++p) {
        Fitted moved = best;
        const bool up = of(best, p) * std::exp(kDifference) <= kFigures[p].most;
        of(moved, p) *= std::exp(up ? kDifference : -kDifference);
        slopes[p] = residuals(moved);
        for (std::size_t i = 0; i < residual.size(); ++i) {
          slopes[p][i] = (slopes[p][i] - residual[i]) / (up ? kDifference : -kDifference);
        }
      }
      const double before = best_cost;
      for (int attempt = 0; attempt < 4; ++attempt) {
        const Fitted moved = bounded(stepped(best, residual, slopes, damping));
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
      if (best_cost > before * (1 - 1e-3)) break;
    }
    return best;
  }

 private:
  static double square(double x) { return x * x; }

  double drawn(const Fitted& fitted, std::size_t p) const {
    if (of(prior_, p) <= 0) return 0;
    return std::log(of(fitted, p) / of(prior_, p)) / kFigures[p].spread;
  }

  Fitted stepped(const Fitted& from, const std::vector<double>& residual,
                 const std::array<std::vector<double>, kCount>& slopes, double damping) const {
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
      b[p] -= kPriorWeight * drawn(from, p) / kFigures[p].spread;
      a[p][p] += kPriorWeight / square(kFigures[p].spread);
      a[p][p] *= 1 + damping;
    }
    const Vector step = solve(a, b);
    Fitted moved = from;
    for (std::size_t p = 0; p < kCount; ++p) {
      of(moved, p) *= std::exp(std::clamp(step[p], -0.5, 0.5));
    }
    return moved;
  }

  const std::vector<const PreparedRun*>& runs_;
  std::vector<double> weights_;
  Fitted prior_;
};

/// The runs, and their datasets, but for those of `left_out` (may be null).
std::pair<std::vector<const PreparedRun*>, std::vector<std::string>> without(
    const CalibrationRuns& runs, const std::string* left_out) {
  std::pair<std::vector<const PreparedRun*>, std::vector<std::string>> result;
  for (std::size_t i = 0; i < runs.runs.size(); ++i) {
    if (left_out != nullptr && runs.datasets[i] == *left_out) continue;
    result.first.push_back(&runs.runs[i]);
    result.second.push_back(runs.datasets[i]);
  }
  return result;
}

double mean_error(const std::vector<double>& residuals) {
  double sum = 0;
  for (const double residual : residuals) sum += std::abs(std::exp(residual) - 1);
  return sum / static_cast<double>(residuals.size());
}

}  // namespace

Fitted fitted_of(const System& system) {
  const DeviceGroup& group = system.groups.front();
  const Efficiency& e = group.chip.efficiency;
  return {e.matmul_peak_fraction,
          e.attention_peak_fraction,
          e.memory_peak_fraction,
          e.kernel_launch_s,
          e.host_operator_s,
          group.intra_node.efficiency,
          system.levels.empty() ? 0 : system.levels.front().efficiency};
}

void apply(const Fitted& fitted, System& system) {
  DeviceGroup& group = system.groups.front();
  Efficiency& e = group.chip.efficiency;
  e.matmul_peak_fraction = fitted.matmul;
  e.attention_peak_fraction = fitted.attention;
  e.memory_peak_fraction = fitted.memory;
  e.kernel_launch_s = fitted.kernel_launch_s;
  e.host_operator_s = fitted.host_operator_s;
  group.intra_node.efficiency = fitted.intra_node;
  if (!system.levels.empty() && fitted.inter_node > 0) {
    system.levels.front().efficiency = fitted.inter_node;
  }
}

std::vector<CalibrationRuns> runs_by_chip(const std::vector<MeasuredRun>& runs) {
  std::vector<PreparedRun> prepared(runs.size());
  parallel_for(runs.size(), [&](std::size_t i) {
    prepared[i] = prepare(runs[i]);
    if (!prepared[i].reason.empty()) return;
    try {
      static_cast<void>(metrics_of(prepared[i], prepared[i].system));
    } catch (const Error& error) {
      prepared[i].reason = error.what();
    }
  });
  std::map<std::string, CalibrationRuns> chips;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!prepared[i].reason.empty()) continue;
    const std::string name = prepared[i].system.groups.front().chip.name;
    CalibrationRuns& of_chip = chips[name];
    of_chip.chip = name;
    of_chip.runs.push_back(std::move(prepared[i]));
    of_chip.datasets.push_back(runs[i].dataset);
  }
  std::vector<CalibrationRuns> result;
  result.reserve(chips.size());
  for (auto& [name, of_chip] : chips) result.push_back(std::move(of_chip));
  return result;
}

ChipCalibration calibrate_chip(const CalibrationRuns& runs) {
  const auto [kept, datasets] = without(runs, nullptr);
  const Fit fit(kept, datasets);
  ChipCalibration result;
  result.chip = runs.chip;
  result.runs = kept.size();
  result.before = fitted_of(kept.front()->system);
  result.mape_before = mean_error(fit.residuals(fit.prior()));
  result.after = fit.run();
  result.mape_after = mean_error(fit.residuals(result.after));
  return result;
}

std::vector<LeftOut> cross_validate(const CalibrationRuns& runs) {
  const std::set<std::string> names(runs.datasets.begin(), runs.datasets.end());
  std::vector<LeftOut> result;
  if (names.size() < 2) return result;
  result.reserve(names.size());
  for (const std::string& name : names) {
    const auto [kept, datasets] = without(runs, &name);
    const Fitted fitted = Fit(kept, datasets).run();
    std::vector<const PreparedRun*> left;
    for (std::size_t i = 0; i < runs.runs.size(); ++i) {
      if (runs.datasets[i] == name) left.push_back(&runs.runs[i]);
    }
    const std::vector<std::string> own(left.size(), name);
    result.push_back({name, left.size(), mean_error(Fit(left, own).residuals(fitted))});
  }
  return result;
}

}  // namespace braid
