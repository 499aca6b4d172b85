#include "braid/validate/cross_validate.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "braid/base/quantile.h"
#include "braid/graph/tensor_size.h"
#include "braid/validate/fit.h"

namespace braid {
namespace {

/// What cross-validation begins at, whatever the chip: round figures of common accelerators. The
/// host's is five calls into an eager framework for an operator of the graph, 10 us each.
constexpr Achieved kCommon = {.matmul = 0.65,
                              .attention = 0.4,
                              .memory = 0.85,
                              .kernel_launch_s = 4e-6,
                              .host_operator_s = 50e-6,
                              .overlap_loss = 0.15,
                              .intra_node = 0.85,
                              .inter_node = 0.85,
                              .narrow_matmul = 0.65};

/// Runs of its own that a user may well have.
constexpr std::size_t kDozen = 12;

FitRuns chosen(const CalibrationRuns& runs, const std::function<bool(std::size_t)>& takes) {
  FitRuns result;
  for (std::size_t i = 0; i < runs.runs.size(); ++i) {
    if (!takes(i)) continue;
    result.runs.push_back(&runs.runs[i]);
    result.datasets.push_back(runs.datasets[i]);
  }
  return result;
}

FitRuns all_of(const CalibrationRuns& runs) {
  return chosen(runs, [](std::size_t) { return true; });
}
FitRuns only(const CalibrationRuns& runs, const std::string& dataset) {
  return chosen(runs, [&](std::size_t i) { return runs.datasets[i] == dataset; });
}
FitRuns but(const CalibrationRuns& runs, const std::string& dataset) {
  return chosen(runs, [&](std::size_t i) { return runs.datasets[i] != dataset; });
}

/// What a host needs for an operator is the trainer's doing more than the chip's: where a chip's
/// runs say little of it, those of other chips do.
class Hosts {
 public:
  explicit Hosts(const std::vector<CalibrationRuns>& chips) : chips_(chips) {}

  /// What all runs but those of the dataset say: the chips' mean, each counted by how much its runs
  /// tell, and the common figure once.
  double seconds_without(const std::string& dataset) {
    double sum = std::log(kCommon.host_operator_s), weight = 1;
    for (std::size_t c = 0; c < chips_.size(); ++c) {
      const Told& chip = without(c, dataset);
      if (chip.weight <= 0) continue;
      sum += chip.weight * std::log(chip.host_operator_s);
      weight += chip.weight;
    }
    return std::exp(sum / weight);
  }

 private:
  struct Told {
    double host_operator_s = 0;
    double weight = 0;  ///< Fit::told_of_host.
  };

  const Told& without(std::size_t chip, const std::string& dataset) {
    const std::vector<std::string>& datasets = chips_[chip].datasets;
    const bool has = std::find(datasets.begin(), datasets.end(), dataset) != datasets.end();
    const auto [known, is_new] = told_.try_emplace({chip, has ? dataset : std::string()});
    if (!is_new) return known->second;
    const FitRuns rest = but(chips_[chip], dataset);
    if (rest.runs.empty()) return known->second;
    const Fit fit(rest, &kCommon);
    const Achieved figures = fit.best();
    known->second = {figures.host_operator_s, fit.told_of_host(figures)};
    return known->second;
  }

  const std::vector<CalibrationRuns>& chips_;
  std::map<std::pair<std::size_t, std::string>, Told> told_;
};

Achieved fitted(const FitRuns& runs, const Achieved& prior) { return Fit(runs, &prior).best(); }

Achieved fitted(const FitRuns& runs, double host_operator_s) {
  Achieved prior = kCommon;
  prior.host_operator_s = host_operator_s;
  return fitted(runs, prior);
}

/// The narrowest floating-point format that the chip's matrix units multiply, in bytes: 2 for A100,
/// 1 for H100, 0.5 for Blackwell.
double narrowest_bytes(const Chip& chip) {
  double bytes = bytes_per_element(Dtype::f32);
  for (const PeakRate& peak : chip.peaks) {
    if (is_floating(peak.dtype)) bytes = std::min(bytes, bytes_per_element(peak.dtype));
  }
  return bytes;
}

/// How alike chips are: 3 when they differ in their memory alone, 2 when they are of a generation,
/// with the same narrowest format, 1 when operators of both are issued by a host, or of neither.
int likeness(const CalibrationRuns& a, const CalibrationRuns& b) {
  const Chip& one = a.runs.front().system.groups.front().chip;
  const Chip& other = b.runs.front().system.groups.front().chip;
  if (one.compute_units == other.compute_units && one.peaks == other.peaks) return 3;
  if ((one.efficiency.host_operator_s > 0) != (other.efficiency.host_operator_s > 0)) return 0;
  return narrowest_bytes(one) == narrowest_bytes(other) ? 2 : 1;
}

/// Figures of each chip that has runs of the dataset, fitted to all others. Where a chip has no
/// others, which `by_analogy` then says, the mean of the chips' that are most alike, and the common
/// figures where none is.
std::vector<Achieved> without(const std::vector<CalibrationRuns>& chips, const std::string& dataset,
                              double host_operator_s, std::vector<bool>& by_analogy) {
  std::vector<FitRuns> rest;
  rest.reserve(chips.size());
  bool any_by_analogy = false;
  for (std::size_t c = 0; c < chips.size(); ++c) {
    rest.push_back(but(chips[c], dataset));
    by_analogy.push_back(rest[c].runs.empty());
    any_by_analogy = any_by_analogy || by_analogy[c];
  }
  std::vector<Achieved> result(chips.size());
  for (std::size_t c = 0; c < chips.size(); ++c) {
    const bool has_own = rest[c].runs.size() < chips[c].runs.size();
    if (by_analogy[c] || !(has_own || any_by_analogy)) continue;
    result[c] = fitted(rest[c], host_operator_s);
  }
  for (std::size_t c = 0; c < chips.size(); ++c) {
    if (!by_analogy[c]) continue;
    std::vector<Achieved> alike;
    int most = 1;
    for (std::size_t o = 0; o < chips.size(); ++o) {
      if (by_analogy[o] || likeness(chips[c], chips[o]) < most) continue;
      if (likeness(chips[c], chips[o]) > most) alike.clear();
      most = likeness(chips[c], chips[o]);
      alike.push_back(result[o]);
    }
    result[c] = mean_figures(alike, kCommon, achieved_of(chips[c].runs.front().system));
  }
  return result;
}

void add_errors(const FitRuns& runs, const Achieved& figures, std::vector<double>& errors) {
  if (runs.runs.empty()) return;
  for (const double residual : Fit(runs).residuals(figures)) {
    errors.push_back(std::exp(residual) - 1);
  }
}

double mean_size(const std::vector<double>& errors) {
  double sum = 0;
  for (const double error : errors) sum += std::abs(error);
  return sum / static_cast<double>(errors.size());
}

/// The dataset's runs `i·n/12`, counted over all chips, join the others. Where a chip has no
/// others, fits begin at, and are drawn to, what chips like it have.
double with_a_dozen(const std::vector<CalibrationRuns>& chips, const std::string& dataset,
                    std::size_t runs, double host_operator_s,
                    const std::vector<Achieved>& without_it) {
  std::set<std::size_t> picked;
  for (std::size_t i = 0; i < kDozen; ++i) picked.insert(i * runs / kDozen);
  std::vector<double> errors;
  std::size_t seen = 0;
  for (std::size_t c = 0; c < chips.size(); ++c) {
    std::vector<bool> is_picked(chips[c].runs.size(), false);
    for (std::size_t i = 0; i < is_picked.size(); ++i) {
      if (chips[c].datasets[i] == dataset) is_picked[i] = picked.contains(seen++);
    }
    const auto is_own = [&](std::size_t i) { return chips[c].datasets[i] == dataset; };
    const FitRuns rest =
        chosen(chips[c], [&](std::size_t i) { return is_own(i) && !is_picked[i]; });
    if (rest.runs.empty()) continue;
    const auto count = std::count(is_picked.begin(), is_picked.end(), true);
    const FitRuns known =
        chosen(chips[c], [&](std::size_t i) { return !is_own(i) || is_picked[i]; });
    if (count == 0) {
      add_errors(rest, without_it[c], errors);
      continue;
    }
    const bool has_others = known.runs.size() > static_cast<std::size_t>(count);
    add_errors(rest, has_others ? fitted(known, host_operator_s) : fitted(known, without_it[c]),
               errors);
  }
  return mean_size(errors);
}

void summarise(LeftOut& left) {
  left.runs = left.errors.size();
  left.mape = mean_size(left.errors);
  std::vector<double> sizes;
  sizes.reserve(left.runs);
  for (const double error : left.errors) {
    sizes.push_back(std::abs(error));
    left.bias += error;
    if (std::abs(error) > std::abs(left.worst)) left.worst = error;
  }
  left.bias /= static_cast<double>(left.runs);
  left.median_ape = median(std::move(sizes));
}

}  // namespace

std::vector<LeftOut> cross_validate(const std::vector<CalibrationRuns>& chips) {
  std::set<std::string> names;
  for (const CalibrationRuns& chip : chips) {
    names.insert(chip.datasets.begin(), chip.datasets.end());
  }
  Hosts hosts(chips);
  std::vector<Achieved> common;  // Fitted to all runs.
  common.reserve(chips.size());
  for (const CalibrationRuns& chip : chips) {
    common.push_back(fitted(all_of(chip), hosts.seconds_without("")));
  }
  std::vector<LeftOut> result;
  result.reserve(names.size());
  for (const std::string& name : names) {
    LeftOut left;
    left.dataset = name;
    const double host_operator_s = hosts.seconds_without(name);
    std::vector<bool> by_analogy;
    const std::vector<Achieved> figures = without(chips, name, host_operator_s, by_analogy);
    std::vector<double> errors_fitted, errors_alone;
    for (std::size_t c = 0; c < chips.size(); ++c) {
      const FitRuns own = only(chips[c], name);
      if (own.runs.empty()) continue;
      if (by_analogy[c]) left.by_analogy += own.runs.size();
      add_errors(own, figures[c], left.errors);
      for (std::size_t i = 0; i < chips[c].rows.size(); ++i) {
        if (chips[c].datasets[i] == name) left.rows.push_back(chips[c].rows[i]);
      }
      add_errors(own, common[c], errors_fitted);
      add_errors(own, fitted(own, kCommon.host_operator_s), errors_alone);
    }
    left.mape_fitted = mean_size(errors_fitted);
    left.mape_alone = mean_size(errors_alone);
    summarise(left);
    if (left.runs >= 2 * kDozen) {
      left.mape_dozen = with_a_dozen(chips, name, left.runs, host_operator_s, figures);
    }
    result.push_back(std::move(left));
  }
  return result;
}

}  // namespace braid
