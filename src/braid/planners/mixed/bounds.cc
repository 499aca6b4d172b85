#include "braid/planners/mixed/bounds.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "braid/base/infinity.h"
#include "braid/planners/mixed/work.h"
#include "braid/search/one_f_one_b_turns.h"

namespace braid {
double turning_excess_s(double time_s, double below_s, double next_s, std::int64_t depth,
                        std::int64_t micro_batches) {
  if (micro_batches <= depth) return 0;
  const double longest_s = OneFOneBTurns::of(depth, micro_batches).diving_s(time_s, below_s);
  if (depth < 2) return longest_s;
  const std::int64_t pairs = (micro_batches - depth - 1) / 2;
  const std::int64_t alone = micro_batches - depth - 2 * pairs;
  return std::max(longest_s, static_cast<double>(pairs) * (time_s + next_s) +
                                 static_cast<double>(alone) * time_s + below_s);
}

double stage_excess_s(double forward_s, double backward_s, double below_s, double next_s,
                      std::int64_t depth, std::int64_t micro_batches) {
  const auto others = static_cast<double>(micro_batches - 1);
  const auto turns = static_cast<double>(std::max<std::int64_t>(0, micro_batches - depth));
  return std::max(
      others * std::max(forward_s, backward_s) + turns * std::min(forward_s, backward_s),
      turning_excess_s(forward_s + backward_s, below_s, next_s, depth, micro_batches));
}

double quick_bound_s(const MixedProblem& problem) {
  const std::size_t layers = problem.forms.front().ways.front().layers.size();
  double least_sum_s = 0, slowest_s = 0;
  for (std::size_t l = 0; l < layers; ++l) {
    double least_s = kInfinity;
    for (const MixedForm& form : problem.forms) {
      for (const MixedWay& way : form.ways) least_s = std::min(least_s, way.layers[l].time_s());
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
