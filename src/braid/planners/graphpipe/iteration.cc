#include "braid/planners/graphpipe/iteration.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "braid/base/infinity.h"
#include "braid/planners/graphpipe/bottleneck.h"
#include "braid/planners/graphpipe/shapes.h"

namespace braid {
namespace {

/// Least and most devices of a stage: any, all the same power of two, or at least that many.
std::vector<std::pair<std::int64_t, std::int64_t>> stage_devices_of(
    const GraphPipeProblem& problem) {
  std::int64_t most = 0;
  for (const GraphPipePool& pool : problem.pools) most = std::max(most, pool.devices);
  most = std::min(most, problem.most_stage_devices);
  std::vector<std::pair<std::int64_t, std::int64_t>> limits = {{problem.least_stage_devices, most}};
  for (std::int64_t devices = 1; devices <= most; devices *= 2) {
    if (devices < problem.least_stage_devices) continue;
    limits.emplace_back(devices, devices);
    if (devices > problem.least_stage_devices) limits.emplace_back(devices, most);
  }
  return limits;
}

}  // namespace

std::int64_t visit_graphpipe_plans(const GraphPipeProblem& problem,
                                   const std::function<double(const GraphPipeSolution&)>& visit) {
  check_graphpipe_problem(problem);
  const std::int64_t cuts = graphpipe_shapes(problem).cuts;
  double limit_s = kInfinity;
  std::int64_t work = 0;
  for (GraphPipeProblem ordered : {problem, linear_graphpipe(problem)}) {
    const GraphPipeShapes form = graphpipe_shapes(ordered);
    for (const auto& [least, most] : stage_devices_of(problem)) {
      ordered.least_stage_devices = least;
      ordered.most_stage_devices = most;
      for (GraphPipeBottleneckSearch& search : graphpipe_searches(ordered, form)) {
        if (!search.may_pass_in(limit_s)) continue;
        const double time_s = search.least_time_s(kInfinity);
        work += search.work();
        if (time_s == kInfinity) continue;
        std::optional<GraphPipeSolution> found = search.plan_at(time_s, problem);
        if (!found) continue;
        found->cuts = cuts;
        found->status = Status::feasible;
        limit_s = visit(*found);
      }
    }
  }
  return work;
}

}  // namespace braid
