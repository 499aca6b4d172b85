#include "braid/planners/mixed_work.h"

#include <algorithm>
#include <limits>

namespace braid {

MixedWork::MixedWork(const MixedProblem& problem)
    : problem_(problem), worth_(problem.capacity.size(), 0) {
  const std::size_t layers = problem.forms.front().ways.front().layers.size();
  for (const MixedForm& form : problem.forms) {
    double devices = 0;
    for (const std::int32_t takes : form.takes) devices += takes;
    for (const MixedWay& way : form.ways) {
      double sum_s = 0;
      for (const ChainLayer& layer : way.layers) sum_s += layer.time_s();
      for (std::size_t k = 0; k < worth_.size() && sum_s > 0; ++k) {
        if (form.takes[k] > 0) worth_[k] = std::max(worth_[k], 1 / (devices * sum_s));
      }
    }
  }
  needed_.assign(layers + 1, 0);
  needed_backward_.assign(layers + 1, 0);
  for (std::size_t l = 0; l < layers; ++l) {
    double least = std::numeric_limits<double>::infinity(), least_backward = least;
    for (const MixedForm& form : problem.forms) {
      double value = 0;
      for (std::size_t k = 0; k < worth_.size(); ++k) value += form.takes[k] * worth_[k];
      for (const MixedWay& way : form.ways) {
        least = std::min(least, value * way.layers[l].time_s());
        least_backward = std::min(least_backward, value * way.layers[l].backward_s);
      }
    }
    needed_[l + 1] = needed_[l] + least;
    needed_backward_[l + 1] = needed_backward_[l] + least_backward;
  }
}

double MixedWork::worth_left(std::span<const std::int32_t> used) const {
  double worth = 0;
  for (std::size_t k = 0; k < worth_.size(); ++k) {
    worth += (problem_.capacity[k] - used[k]) * worth_[k];
  }
  return worth;
}

double MixedWork::share(const std::vector<double>& needed, std::int32_t left, double worth) {
  constexpr double kRounding = 1 - 1e-12;
  const double sum = needed[static_cast<std::size_t>(left)];
  if (sum <= 0) return 0;
  return worth > 0 ? kRounding * sum / worth : std::numeric_limits<double>::infinity();
}

}  // namespace braid
