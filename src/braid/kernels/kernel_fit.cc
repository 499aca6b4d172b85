#include "braid/kernels/kernel_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace braid {
namespace {

/// Residuals beyond this count by their size, not its square: as far as repeats differ.
constexpr double kLargeResidual = 0.03;
/// Weight of a start against one row.
constexpr double kPriorWeight = 1e-4;
constexpr DescentLimits kLimits = {40, 1e-3, true};

/// Some groups of a chip as one problem. The figures of the problem are first those of the chip,
/// then each group's own.
class JointProblem {
 public:
  JointProblem(std::vector<const KernelGroup*> groups, std::vector<int> choices)
      : groups_(std::move(groups)), choices_(std::move(choices)) {
    const std::vector<bool> of_chip = groups_.front()->of_chip();
    const std::vector<FreeFigure> figures = groups_.front()->figures();
    own_.resize(groups_.size());
    for (std::size_t f = 0; f < figures.size(); ++f) {
      if (of_chip[f]) place(f, 0, groups_.size(), figures[f]);
    }
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      for (std::size_t f = 0; f < figures.size(); ++f) {
        if (!of_chip[f]) place(f, g, g + 1, figures[f]);
      }
    }
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      first_.push_back(rows_.size());
      for (std::size_t i = 0; i < groups_[g]->measured_s.size(); ++i) {
        if (!groups_[g]->held_out[i]) rows_.push_back({g, i});
      }
    }
    first_.push_back(rows_.size());
  }

  /// Ends with each group's figures.
  std::vector<std::vector<double>> fit(const std::vector<std::vector<double>>& starts,
                                       double* cost) const {
    std::vector<double> from(bounds_.size());
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      for (std::size_t f = 0; f < own_[g].size(); ++f) from[own_[g][f]] += std::log(starts[g][f]);
    }
    for (std::size_t p = 0; p < from.size(); ++p) {
      from[p] = std::exp(from[p] / static_cast<double>(spans_[p].second - spans_[p].first));
    }
    LeastSquares problem;
    problem.figures = bounds_;
    problem.weights.assign(rows_.size(), 1);
    problem.prior_weight = kPriorWeight;
    problem.loss = smooth_loss(kLargeResidual);
    problem.residuals = [this](const std::vector<double>& v) { return residuals(v); };
    problem.slopes = [this](const std::vector<double>& v, const std::vector<double>& r) {
      return slopes(v, r);
    };
    const Descent descent = descend(problem, bounded(bounds_, from), kLimits);
    *cost = descent.cost;
    std::vector<std::vector<double>> result;
    for (std::size_t g = 0; g < groups_.size(); ++g) result.push_back(of_group(descent.figures, g));
    return result;
  }

 private:
  struct Row {
    std::size_t group, index;
  };

  void place(std::size_t figure, std::size_t first, std::size_t last, const FreeFigure& bounds) {
    for (std::size_t g = first; g < last; ++g) {
      own_[g].resize(std::max(own_[g].size(), figure + 1));
      own_[g][figure] = bounds_.size();
    }
    bounds_.push_back(bounds);
    spans_.emplace_back(first, last);
  }

  std::vector<double> of_group(const std::vector<double>& all, std::size_t g) const {
    std::vector<double> figures;
    for (const std::size_t p : own_[g]) figures.push_back(all[p]);
    return figures;
  }

  std::vector<double> residuals(const std::vector<double>& all) const {
    std::vector<double> result(rows_.size());
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      const std::vector<double> figures = of_group(all, g);
      for (std::size_t i = first_[g]; i < first_[g + 1]; ++i) {
        const std::size_t row = rows_[i].index;
        result[i] = std::log(groups_[g]->time(figures, choices_[g], row).time_s /
                             groups_[g]->measured_s[row]);
      }
    }
    return result;
  }

  /// At the variants that are least now: their times are the least of all for small steps too.
  std::vector<SlopeColumn> slopes(const std::vector<double>& all,
                                  const std::vector<double>& residual) const {
    std::vector<int> variants(rows_.size());
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      const std::vector<double> figures = of_group(all, g);
      for (std::size_t i = first_[g]; i < first_[g + 1]; ++i) {
        variants[i] = groups_[g]->time(figures, choices_[g], rows_[i].index).variant;
      }
    }
    std::vector<SlopeColumn> result(all.size());
    for (std::size_t p = 0; p < all.size(); ++p) {
      const double step = slope_step(bounds_[p], all[p]);
      std::vector<double> moved = all;
      moved[p] *= std::exp(step);
      const auto [first, last] = spans_[p];
      result[p].first = first_[first];
      for (std::size_t g = first; g < last; ++g) {
        const std::vector<double> figures = of_group(moved, g);
        for (std::size_t i = first_[g]; i < first_[g + 1]; ++i) {
          const std::size_t row = rows_[i].index;
          const double time = groups_[g]->time_of(figures, choices_[g], row, variants[i]);
          result[p].values.push_back((std::log(time / groups_[g]->measured_s[row]) - residual[i]) /
                                     step);
        }
      }
    }
    return result;
  }

  std::vector<const KernelGroup*> groups_;
  std::vector<int> choices_;
  std::vector<std::vector<std::size_t>> own_;  ///< By group and figure: its place in the problem.
  std::vector<FreeFigure> bounds_;
  std::vector<std::pair<std::size_t, std::size_t>> spans_;  ///< Of each place: its groups.
  std::vector<Row> rows_;
  std::vector<std::size_t> first_;  ///< Of each group: its first row.
};

FittedKernel fit_alone(const KernelGroup& group) {
  std::vector<double> start;
  for (const FreeFigure& figure : group.figures()) start.push_back(figure.prior);
  FittedKernel best;
  double best_cost = std::numeric_limits<double>::infinity();
  const auto attempt = [&](int choice) {
    double cost = 0;
    const JointProblem problem({&group}, {choice});
    std::vector<std::vector<double>> figures = problem.fit({start}, &cost);
    if (cost >= best_cost) return;
    best_cost = cost;
    best = {std::move(figures.front()), choice};
  };
  attempt(0);
  for (int round = 0; round < 2; ++round) {
    int unit = 1;
    for (const int ways : group.options()) {
      const int now = best.choice;
      const int digit = now / unit % ways;
      for (int way = 0; way < ways; ++way) {
        if (way != digit) attempt(now + (way - digit) * unit);
      }
      unit *= ways;
    }
  }
  return best;
}

/// To four digits, as figures are stored.
double rounded(double figure) {
  if (figure == 0) return 0;
  const double unit = std::pow(10, std::floor(std::log10(figure)) - 3);
  return std::round(figure / unit) * unit;
}

}  // namespace

std::vector<FittedKernel> fit_kernels(const std::vector<const KernelGroup*>& groups) {
  std::vector<FittedKernel> fits;
  std::vector<int> choices;
  std::vector<std::vector<double>> starts;
  for (const KernelGroup* group : groups) {
    fits.push_back(fit_alone(*group));
    choices.push_back(fits.back().choice);
    starts.push_back(fits.back().figures);
  }
  const std::vector<bool> of_chip = groups.front()->of_chip();
  if (groups.size() > 1 && std::find(of_chip.begin(), of_chip.end(), true) != of_chip.end()) {
    double cost = 0;
    const JointProblem problem(groups, choices);
    const std::vector<std::vector<double>> together = problem.fit(starts, &cost);
    for (std::size_t g = 0; g < groups.size(); ++g) fits[g].figures = together[g];
  }
  for (FittedKernel& fit : fits) {
    for (double& figure : fit.figures) figure = rounded(figure);
  }
  return fits;
}

}  // namespace braid
