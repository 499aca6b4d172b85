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
  double Achieved::*field;
  double least, most;  ///< Bounds.
  double spread;       ///< How far, as a logarithm, the catalogue may well be off.
};
constexpr std::array kFigures = {Figure{&Achieved::matmul, 0.3, 0.98, 0.3},
                                 Figure{&Achieved::attention, 0.1, 0.9, 0.5},
                                 Figure{&Achieved::memory, 0.3, 0.98, 0.3},
                                 Figure{&Achieved::kernel_launch_s, 5e-7, 2e-5, 0.7},
                                 Figure{&Achieved::host_operator_s, 1e-6, 2e-4, 1.5},
                                 Figure{&Achieved::overlap_loss, 0.02, 0.5, 0.5},
                                 Figure{&Achieved::intra_node, 0.15, 1, 0.5},
                                 Figure{&Achieved::inter_node, 0.1, 1, 0.7}};
constexpr std::size_t kCount = kFigures.size();
constexpr std::size_t kHost = 4;
static_assert(kFigures[kHost].field == &Achieved::host_operator_s);
/// A host that shows in every run of small kernels.
constexpr double kSlowHost = 100e-6;
using Vector = std::array<double, kCount>;
using Matrix = std::array<Vector, kCount>;

/// Weight of what the catalogue says against one dataset.
constexpr double kPriorWeight = 0.002;
/// Residuals beyond this count by their size, not its square.
constexpr double kLargeResidual = 0.1;

double& of(Achieved& fitted, std::size_t i) { return fitted.*kFigures[i].field; }
double of(const Achieved& fitted, std::size_t i) { return fitted.*kFigures[i].field; }

/// Zero means that there is no such effect, and stays.
bool may_be_none(std::size_t i) {
  return kFigures[i].field == &Achieved::inter_node ||
         kFigures[i].field == &Achieved::host_operator_s ||
         kFigures[i].field == &Achieved::overlap_loss;
}

Achieved bounded(Achieved fitted) {
  for (std::size_t i = 0; i < kCount; ++i) {
    if (of(fitted, i) <= 0 && may_be_none(i)) continue;
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
  /// `prior`: what to begin at and be drawn to in place of the catalogue's figures.
  Fit(const std::vector<const PreparedRun*>& runs, const std::vector<std::string>& datasets,
      const Achieved* prior = nullptr)
      : runs_(runs), weights_(runs.size()) {
    std::map<std::string, double> sizes;
    for (const std::string& dataset : datasets) ++sizes[dataset];
    for (std::size_t i = 0; i < runs.size(); ++i) weights_[i] = 1 / sizes[datasets[i]];
    // Clusters of one chip may differ in their networks; what is fitted is the same for all.
    prior_ = bounded(achieved_of(runs.front()->system));
    for (const PreparedRun* run : runs) {
      if (prior_.inter_node <= 0) prior_.inter_node = achieved_of(run->system).inter_node;
    }
    for (std::size_t i = 0; prior != nullptr && i < kCount; ++i) {
      if (of(prior_, i) > 0) of(prior_, i) = of(*prior, i);
    }
  }

  const Achieved& prior() const { return prior_; }

  /// log(predicted / measured) of each run.
  std::vector<double> residuals(const Achieved& fitted) const {
    std::vector<double> result(runs_.size());
    parallel_for(runs_.size(), [&](std::size_t i) {
      System system = runs_[i]->system;
      apply(fitted, system);
      result[i] = std::log(metrics_of(*runs_[i], system).iteration_time_s / runs_[i]->measured_s);
    });
    return result;
  }

  double cost(const Achieved& fitted, const std::vector<double>& residuals) const {
    double sum = 0;
    for (std::size_t i = 0; i < residuals.size(); ++i) {
      const double r = std::abs(residuals[i]);
      sum +=
          weights_[i] * (r <= kLargeResidual ? r * r : kLargeResidual * (2 * r - kLargeResidual));
    }
    for (std::size_t p = 0; p < kCount; ++p) sum += kPriorWeight * square(drawn(fitted, p));
    return sum;
  }

  /// How far the runs, not the prior, tell what `fitted` has for the host's time: 0 to 1.
  double told_of_host(const Achieved& fitted) const {
    if (fitted.host_operator_s <= 0) return 0;
    Achieved moved = fitted;
    moved.host_operator_s *= std::exp(-kDifference);
    const std::vector<double> before = residuals(fitted), after = residuals(moved);
    double told = 0;
    for (std::size_t i = 0; i < before.size(); ++i) {
      told += weights_[i] * square((after[i] - before[i]) / kDifference);
    }
    return told / (told + kPriorWeight / square(kFigures[kHost].spread));
  }

  /// The best of two descents. A host that is fast enough never shows, and then there is no slope
  /// towards a slower one: the second begins with one that shows.
  Achieved run() const {
    const Achieved near = descend(prior_);
    if (prior_.host_operator_s <= 0) return near;
    Achieved start = prior_;
    start.host_operator_s = std::max(start.host_operator_s, kSlowHost);
    const Achieved far = descend(start);
    return cost(far, residuals(far)) < cost(near, residuals(near)) ? far : near;
  }

 private:
  static constexpr double kDifference = 0.03;  ///< Step of slopes, as a logarithm.

  static double square(double x) { return x * x; }

  Achieved descend(Achieved best) const {
    constexpr int kMostSteps = 12;
    std::vector<double> residual = residuals(best);
    double best_cost = cost(best, residual);
    double damping = 0.01;
    for (int step = 0; step < kMostSteps; ++step) {
      std::array<std::vector<double>, kCount> slopes;
      for (std::size_t p = 0; p < kCount; ++p) {
        Achieved moved = best;
        const bool up = of(best, p) * std::exp(kDifference) <= kFigures[p].most;
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
      if (best_cost > before * (1 - 1e-3)) break;
    }
    return best;
  }

  double drawn(const Achieved& fitted, std::size_t p) const {
    if (of(prior_, p) <= 0) return 0;
    return std::log(of(fitted, p) / of(prior_, p)) / kFigures[p].spread;
  }

  Achieved stepped(const Achieved& from, const std::vector<double>& residual,
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
    Achieved moved = from;
    for (std::size_t p = 0; p < kCount; ++p) {
      of(moved, p) *= std::exp(std::clamp(step[p], -0.5, 0.5));
    }
    return moved;
  }

  const std::vector<const PreparedRun*>& runs_;
  std::vector<double> weights_;
  Achieved prior_;
};

/// The runs, and their datasets, but for those of `left_out` (may be null).
std::pair<std::vector<const PreparedRun*>, std::vector<std::string>> kept_runs(
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

/// What cross-validation begins at, whatever the chip: round figures of common accelerators. The
/// host's is five calls into an eager framework for an operator of the graph, 10 us each.
constexpr Achieved kCommon = {.matmul = 0.65,
                              .attention = 0.4,
                              .memory = 0.85,
                              .kernel_launch_s = 4e-6,
                              .host_operator_s = 50e-6,
                              .overlap_loss = 0.15,
                              .intra_node = 0.85,
                              .inter_node = 0.85};

/// Fits of each chip with one dataset left out, each done once. What a host needs for an operator
/// is the trainer's doing more than the chip's: where a chip's runs say little of it, those of
/// other chips do.
class LeftOneOut {
 public:
  explicit LeftOneOut(const std::vector<CalibrationRuns>& chips) : chips_(chips) {}

  bool has_others(std::size_t chip, const std::string& dataset) const {
    const std::vector<std::string>& datasets = chips_[chip].datasets;
    return std::any_of(datasets.begin(), datasets.end(),
                       [&](const std::string& other) { return other != dataset; });
  }

  const Achieved& with_all(std::size_t chip) { return fit(chip, ""); }

  Achieved without(std::size_t chip, const std::string& dataset) {
    if (has_others(chip, dataset)) return fit(chip, dataset);
    Achieved mean;
    double count = 0;
    for (std::size_t c = 0; c < chips_.size(); ++c) {
      if (!has_others(c, dataset)) continue;
      const Achieved& fitted = fit(c, dataset);
      ++count;
      for (std::size_t i = 0; i < kCount; ++i) {
        of(mean, i) += std::log(std::max(of(fitted, i) > 0 ? of(fitted, i) : of(kCommon, i), 1e-9));
      }
    }
    if (count == 0) return kCommon;
    const Achieved own = achieved_of(chips_[chip].runs.front().system);
    for (std::size_t i = 0; i < kCount; ++i) {
      of(mean, i) = of(own, i) > 0 ? std::exp(of(mean, i) / count) : 0;
    }
    return mean;
  }

 private:
  struct Alone {
    double host_operator_s = 0;
    double told = 0;  ///< Fit::told_of_host.
  };
  using Key = std::pair<std::size_t, std::string>;

  /// What the chip's runs but those of the dataset say of the host.
  const Alone& alone(std::size_t chip, const std::string& dataset) {
    const std::vector<std::string>& datasets = chips_[chip].datasets;
    const bool has = std::find(datasets.begin(), datasets.end(), dataset) != datasets.end();
    const Key key{chip, has ? dataset : std::string()};
    const auto found = alone_.find(key);
    if (found != alone_.end()) return found->second;
    const auto [kept, names] = kept_runs(chips_[chip], &dataset);
    const Fit fit(kept, names, &kCommon);
    const Achieved fitted = fit.run();
    return alone_.emplace(key, Alone{fitted.host_operator_s, fit.told_of_host(fitted)})
        .first->second;
  }

  /// The chips' mean, each counted by how much its runs tell, and the common figure once.
  double common_host_s(const std::string& dataset) {
    double sum = std::log(kCommon.host_operator_s), weight = 1;
    for (std::size_t c = 0; c < chips_.size(); ++c) {
      if (!has_others(c, dataset)) continue;
      const Alone& chip = alone(c, dataset);
      if (chip.told <= 0) continue;
      sum += chip.told * std::log(chip.host_operator_s);
      weight += chip.told;
    }
    return std::exp(sum / weight);
  }

  const Achieved& fit(std::size_t chip, const std::string& dataset) {
    const Key key{chip, dataset};
    const auto found = done_.find(key);
    if (found != done_.end()) return found->second;
    Achieved prior = kCommon;
    prior.host_operator_s = common_host_s(dataset);
    const auto [kept, names] = kept_runs(chips_[chip], dataset.empty() ? nullptr : &dataset);
    return done_.emplace(key, Fit(kept, names, &prior).run()).first->second;
  }

  const std::vector<CalibrationRuns>& chips_;
  std::map<Key, Alone> alone_;
  std::map<Key, Achieved> done_;
};

void summarise(LeftOut& left) {
  left.runs = left.errors.size();
  std::vector<double> sizes;
  sizes.reserve(left.runs);
  for (const double error : left.errors) {
    sizes.push_back(std::abs(error));
    left.mape += std::abs(error);
    left.bias += error;
    if (std::abs(error) > std::abs(left.worst)) left.worst = error;
  }
  left.mape /= static_cast<double>(left.runs);
  left.bias /= static_cast<double>(left.runs);
  std::sort(sizes.begin(), sizes.end());
  left.median_ape = (sizes[(left.runs - 1) / 2] + sizes[left.runs / 2]) / 2;
}

}  // namespace

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
    // Times on several types of chips tell apart none of them.
    if (!prepared[i].reason.empty() || prepared[i].system.groups.size() > 1) continue;
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
  const auto [kept, datasets] = kept_runs(runs, nullptr);
  const Fit fit(kept, datasets);
  ChipCalibration result;
  result.chip = runs.chip;
  result.runs = kept.size();
  result.before = achieved_of(kept.front()->system);
  result.mape_before = mean_error(fit.residuals(fit.prior()));
  result.after = fit.run();
  result.mape_after = mean_error(fit.residuals(result.after));
  return result;
}

std::vector<LeftOut> cross_validate(const std::vector<CalibrationRuns>& chips) {
  std::set<std::string> names;
  for (const CalibrationRuns& chip : chips) {
    names.insert(chip.datasets.begin(), chip.datasets.end());
  }
  LeftOneOut fits(chips);
  std::vector<LeftOut> result;
  result.reserve(names.size());
  for (const std::string& name : names) {
    LeftOut left;
    left.dataset = name;
    double fitted_sum = 0;
    for (std::size_t c = 0; c < chips.size(); ++c) {
      std::vector<const PreparedRun*> own;
      for (std::size_t i = 0; i < chips[c].runs.size(); ++i) {
        if (chips[c].datasets[i] == name) own.push_back(&chips[c].runs[i]);
      }
      if (own.empty()) continue;
      const Fit fit(own, std::vector<std::string>(own.size(), name));
      const std::vector<double> with = fit.residuals(fits.with_all(c));
      fitted_sum += mean_error(with) * static_cast<double>(own.size());
      if (!fits.has_others(c, name)) left.by_analogy += own.size();
      for (const double residual : fit.residuals(fits.without(c, name))) {
        left.errors.push_back(std::exp(residual) - 1);
      }
    }
    left.mape_fitted = fitted_sum / static_cast<double>(left.errors.size());
    summarise(left);
    result.push_back(std::move(left));
  }
  return result;
}

}  // namespace braid
