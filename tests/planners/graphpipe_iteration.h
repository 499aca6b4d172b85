#pragma once

#include <cstdint>

#include "braid/base/infinity.h"
#include "braid/base/rounding.h"
#include "braid/planners/graphpipe/iteration.h"

namespace braid::test {

/// Of the plans that visit_graphpipe_plans() shows, the one with the shortest iteration. At best
/// Status::feasible.
inline GraphPipeSolution shortest_iteration(const GraphPipeProblem& problem) {
  GraphPipeSolution best;
  double best_s = kInfinity;
  const std::int64_t work = visit_graphpipe_plans(problem, [&](const GraphPipeSolution& found) {
    const double iteration_s = graphpipe_iteration_s(problem, found);
    if (iteration_s < best_s) {
      best_s = iteration_s;
      best = found;
    }
    // Any stage's passes alone take their time for every sample of the batch.
    return best_s / static_cast<double>(problem.batch) * kAboveTolerance;
  });
  best.work = work;
  return best;
}

}  // namespace braid::test
