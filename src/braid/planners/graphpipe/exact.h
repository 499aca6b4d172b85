#pragma once

#include <cstddef>

#include "braid/base/infinity.h"
#include "braid/planners/graphpipe/problem.h"

namespace braid {

inline constexpr std::size_t kMostExactNodes = 64;
inline constexpr std::size_t kMostExactSets = 4096;
inline constexpr std::size_t kMostExactPairs = std::size_t{1} << 20;

/// The best of all graph pipelines, series-parallel stages or not: what solve_graphpipe is held
/// against on small graphs. Any partition into stages without a circle can be built from the sinks
/// up, each stage a difference of two sets that are closed under successors. Over these sets and a
/// target time, the partial plans are kept that are Pareto-optimal in devices and in the samples in
/// flight and the copies of every stage that one to come hands over to; the target is searched over
/// all stages' times below `limit_s`. Always one micro-batch size for all stages, InFlight::table.
/// Status::optimal, or infeasible when no plan is below the limit. Cost: pairs of closed sets times
/// partial plans, times the log of the number of stage times. Throws Error as
/// check_graphpipe_problem, for mixed sizes or another in-flight rule, and for more than
/// kMostExactNodes nodes, kMostExactSets closed sets or kMostExactPairs pairs.
GraphPipeSolution solve_graphpipe_exactly(const GraphPipeProblem& problem,
                                          double limit_s = kInfinity);

}  // namespace braid
