#include "braid/planners/mixed/work.h"

#include <algorithm>

#include "braid/base/infinity.h"
#include "braid/base/rounding.h"
#include "braid/search/one_f_one_b_turns.h"

namespace braid {

MixedWork::MixedWork(const MixedProblem& problem)
    : problem_(problem), speed_(problem.capacity.size(), 0) {
  const std::size_t layers = problem.configs.front().variants.front().layers.size();
  for (const MixedConfig& config : problem.configs) {
    double devices = 0;
    for (const std::int32_t takes : config.takes) devices += takes;
    for (const MixedVariant& variant : config.variants) {
      double sum_s = 0;
      for (const ChainLayer& layer : variant.layers) sum_s += layer.time_s();
      for (std::size_t k = 0; k < speed_.size() && sum_s > 0; ++k) {
        if (config.takes[k] > 0) speed_[k] = std::max(speed_[k], 1 / (devices * sum_s));
      }
    }
  }
  needed_.assign(layers + 1, 0);
  needed_backward_.assign(layers + 1, 0);
  for (std::size_t l = 0; l < layers; ++l) {
    double least = kInfinity, least_backward = least;
    for (const MixedConfig& config : problem.configs) {
      double value = 0;
      for (std::size_t k = 0; k < speed_.size(); ++k) value += config.takes[k] * speed_[k];
      for (const MixedVariant& variant : config.variants) {
        const double time_s = variant.layers[l].time_s();
        least = std::min(least, value * time_s);
        if (time_s > 0)
          backward_share_ = std::min(backward_share_, variant.layers[l].backward_s / time_s);
        least_backward = std::min(least_backward, value * variant.layers[l].backward_s);
      }
    }
    needed_[l + 1] = needed_[l] + least;
    needed_backward_[l + 1] = needed_backward_[l] + least_backward;
  }
}

double MixedWork::longest_excess_s(std::int32_t left, double capacity, std::int64_t depth,
                                   std::int64_t most_stages, double below_s) const {
  const std::int64_t m = problem_.micro_batches;
  const double stage_s = share(needed_, left, capacity);
  if (stage_s == kInfinity) return stage_s;
  // The deeper it is, the less: every stage that it may be in front of takes a turn from it.
  const std::int64_t deepest = std::min(m, depth + std::max<std::int64_t>(1, most_stages));
  return std::max(OneFOneBTurns::least_excess_s(deepest, m, stage_s, backward_share_, below_s),
                  static_cast<double>(m - 1) * share(needed_backward_, left, capacity));
}

double MixedWork::capacity_left(std::span<const std::int32_t> used) const {
  double capacity = 0;
  for (std::size_t k = 0; k < speed_.size(); ++k) {
    capacity += (problem_.capacity[k] - used[k]) * speed_[k];
  }
  return capacity;
}

double MixedWork::share(const std::vector<double>& needed, std::int32_t left, double capacity) {
  const double sum = needed[static_cast<std::size_t>(left)];
  if (sum <= 0) return 0;
  return capacity > 0 ? kBelowRounding * sum / capacity : kInfinity;
}

}  // namespace braid
