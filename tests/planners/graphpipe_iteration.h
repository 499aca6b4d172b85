#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "braid/base/infinity.h"
#include "braid/base/rounding.h"
#include "braid/planners/graphpipe/iteration.h"
#include "braid/planners/graphpipe/pricing.h"
#include "braid/schedule/graph_orders.h"
#include "braid/schedule/in_flight.h"
#include "braid/schedule/order_timing.h"

namespace braid::test {

/// Time of an iteration of a plan of that problem by simulation (order_timing.h), every stage with
/// the warm-up passes of its samples in flight; of more than 2^17 micro-batches over all stages the
/// time that its rate, fill and gradients allow at least.
inline double graphpipe_iteration_s(const GraphPipeProblem& problem,
                                    const GraphPipeSolution& solution) {
  constexpr std::int64_t kMostSimulated = std::int64_t{1} << 17;
  std::int64_t passes = 0;
  double sync_s = 0;
  const TimedGraph timed = timed_graph_of(problem, solution);
  std::vector<std::int64_t> k, in_flight;
  for (std::size_t s = 0; s < solution.stages.size(); ++s) {
    passes += timed.graph.micro_batches(s);
    sync_s = std::max(sync_s, timed.costs[s].reduce_gradients_s);
    k.push_back(solution.stages[s].group.k);
    in_flight.push_back(solution.stages[s].in_flight);
  }
  if (passes > kMostSimulated) {
    const auto last = static_cast<double>(problem.batch - solution.stages[0].group.micro_batch);
    return last * solution.time_s + solution.fill_s + sync_s;
  }
  const std::vector<std::int64_t> warm_ups = warm_ups_of(timed.graph, k, in_flight);
  return time_order(timed, k_f_k_b_order(timed.graph, k, warm_ups)).time_s;
}

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
