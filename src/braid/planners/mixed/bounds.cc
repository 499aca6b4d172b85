#include "braid/planners/mixed/bounds.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "braid/base/infinity.h"
#include "braid/planners/mixed/work.h"

namespace braid {

double quick_bound_s(const MixedProblem& problem) {
  const std::size_t layers = problem.configs.front().variants.front().layers.size();
  double least_sum_s = 0, slowest_s = 0;
  for (std::size_t l = 0; l < layers; ++l) {
    double least_s = kInfinity;
    for (const MixedConfig& config : problem.configs) {
      for (const MixedVariant& variant : config.variants)
        least_s = std::min(least_s, variant.layers[l].time_s());
    }
    least_sum_s += least_s;
    slowest_s = std::max(slowest_s, least_s);
  }
  const MixedWork work(problem);
  const std::vector<std::int32_t> none(problem.capacity.size(), 0);
  const double shared_s =
      work.longest_stage_s(static_cast<std::int32_t>(layers), work.capacity_left(none));
  const double passes_s =
      static_cast<double>(problem.micro_batches) * std::max(slowest_s, shared_s);
  return problem.readers.empty() ? std::max(least_sum_s, passes_s) : passes_s;
}

}  // namespace braid
