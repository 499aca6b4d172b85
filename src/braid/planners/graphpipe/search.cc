#include "braid/planners/graphpipe/search.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "braid/base/infinity.h"
#include "braid/planners/graphpipe/bottleneck.h"
#include "braid/planners/graphpipe/shapes.h"

namespace braid {

GraphPipeSolution solve_graphpipe(const GraphPipeProblem& problem) {
  check_graphpipe_problem(problem);
  const GraphPipeShapes form = graphpipe_shapes(problem);
  std::vector<GraphPipeBottleneckSearch> searches = graphpipe_searches(problem, form);
  double best_s = kInfinity;
  for (GraphPipeBottleneckSearch& search : searches) {
    best_s = std::min(best_s, search.quick_time_s(best_s));
  }
  for (GraphPipeBottleneckSearch& search : searches) {
    best_s = std::min(best_s, search.least_time_s(best_s));
  }
  GraphPipeSolution best;
  best.cuts = form.cuts;
  for (GraphPipeBottleneckSearch& search : searches) {
    if (best_s == kInfinity) break;
    if (!search.has_relaxed(best_s)) continue;
    std::optional<GraphPipeSolution> found = search.plan_at(best_s, problem);
    if (!found) continue;
    if (best.status == Status::infeasible || found->fill_s < best.fill_s) best = std::move(*found);
  }
  best.work = 0;
  for (const GraphPipeBottleneckSearch& search : searches) best.work += search.work();
  return best;
}

}  // namespace braid
