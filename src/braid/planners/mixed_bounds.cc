#include "braid/planners/mixed_bounds.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

namespace braid {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

double turning_excess_s(double time_s, double below_s, double next_s, std::int64_t depth,
                        std::int64_t micro_batches) {
  if (micro_batches <= depth) return 0;
  const std::int64_t dives = (micro_batches - 1) / depth;
  const std::int64_t rest = (micro_batches - 1) % depth;
  const double longest_s = std::max(
      static_cast<double>(micro_batches - depth) * time_s + below_s,
      static_cast<double>(dives) * (time_s + below_s) + static_cast<double>(rest) * time_s);
  if (depth < 2) return longest_s;
  const std::int64_t pairs = (micro_batches - depth - 1) / 2;
  const std::int64_t alone = micro_batches - depth - 2 * pairs;
  return std::max(longest_s, static_cast<double>(pairs) * (time_s + next_s) +
                                 static_cast<double>(alone) * time_s + below_s);
}

double stage_excess_s(double forward_s, double backward_s, double below_s, double next_s,
                      std::int64_t depth, std::int64_t micro_batches) {
  return std::max(static_cast<double>(micro_batches - 1) * std::max(forward_s, backward_s),
                  turning_excess_s(forward_s + backward_s, below_s, next_s, depth, micro_batches));
}

double quick_bound_s(const MixedProblem& problem) {
  const std::size_t layers = problem.forms.front().ways.front().layers.size();
  const std::size_t kinds = problem.capacity.size();
  // Whatever a second of a device of each kind is worth, the work at its cheapest cannot be worth
  // more than all devices' time. A device is worth what it does of the whole model.
  std::vector<double> worth(kinds, 0);
  double least_sum_s = 0, slowest_s = 0;
  for (std::size_t l = 0; l < layers; ++l) {
    double least_s = kInfinity;
    for (const MixedForm& form : problem.forms) {
      least_s = std::min(least_s, form.ways.front().layers[l].time_s());
    }
    least_sum_s += least_s;
    slowest_s = std::max(slowest_s, least_s);
  }
  for (const MixedForm& form : problem.forms) {
    double devices = 0, sum_s = 0;
    for (const std::int32_t takes : form.takes) devices += takes;
    for (const ChainLayer& layer : form.ways.front().layers) sum_s += layer.time_s();
    for (std::size_t k = 0; k < kinds && sum_s > 0; ++k) {
      if (form.takes[k] > 0) worth[k] = std::max(worth[k], 1 / (devices * sum_s));
    }
  }
  double there = 0;
  for (std::size_t k = 0; k < kinds; ++k) there += problem.capacity[k] * worth[k];
  double needed = 0;
  for (std::size_t l = 0; l < layers; ++l) {
    double least = kInfinity;
    for (const MixedForm& form : problem.forms) {
      double value = 0;
      for (std::size_t k = 0; k < kinds; ++k) value += form.takes[k] * worth[k];
      least = std::min(least, value * form.ways.front().layers[l].time_s());
    }
    needed += least;
  }
  const auto m = static_cast<double>(problem.micro_batches);
  return std::max({least_sum_s, m * slowest_s, there > 0 ? m * needed / there : 0});
}

}  // namespace braid
