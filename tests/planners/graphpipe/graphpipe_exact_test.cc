#include <algorithm>
#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/planners/graphpipe/exact.h"
#include "braid/planners/graphpipe/pricing.h"
#include "braid/planners/graphpipe/search.h"

#include "planners/graphpipe_problems.h"

namespace braid {
namespace {

using test::add_random_experts;
using test::add_random_strategies;
using test::all_partitions;
using test::best_of;
using test::branched_graphpipe;
using test::random_graphpipe;
using ::testing::HasSubstr;

/// Holds the exact search against all partitions; whether there is a plan.
bool finds_the_best(const GraphPipeProblem& problem, int i) {
  const GraphPipeSolution found = solve_graphpipe_exactly(problem);
  const double best_s = best_of(problem, all_partitions(problem));
  if (found.status == Status::infeasible) {
    EXPECT_EQ(best_s, std::numeric_limits<double>::infinity()) << i;
    return false;
  }
  EXPECT_NEAR(found.time_s, best_s, 1e-9 * best_s) << i;
  GraphPipeSolution priced = found;
  EXPECT_TRUE(price_graphpipe(problem, priced));
  return true;
}

TEST(GraphPipeExact, FindsTheBestOfAllPartitions) {
  std::mt19937_64 random(61);
  int planned = 0;
  for (int i = 0; i < 120; ++i) {
    const GraphPipeProblem problem = random_graphpipe(random, 5, i % 2 == 0);
    if (finds_the_best(problem, i)) ++planned;
  }
  EXPECT_GT(planned, 60);
}

TEST(GraphPipeExact, FindsTheBestOfAllWaysToRun) {
  std::mt19937_64 random(161);
  int planned = 0;
  for (int i = 0; i < 90; ++i) {
    GraphPipeProblem problem = random_graphpipe(random, 4, i % 2 == 0);
    add_random_strategies(random, problem);
    if (i % 3 == 0) problem.pools.front().bandwidth_bytes_per_s = 0.5;  // Copies then decide.
    if (finds_the_best(problem, i)) ++planned;
  }
  EXPECT_GT(planned, 45);
}

TEST(GraphPipeExact, FindsTheBestSpreadOfExperts) {
  std::mt19937_64 random(163);
  int planned = 0;
  for (int i = 0; i < 90; ++i) {
    GraphPipeProblem problem = random_graphpipe(random, 4, i % 2 == 0);
    add_random_strategies(random, problem);
    add_random_experts(random, problem);
    if (finds_the_best(problem, i)) ++planned;
  }
  EXPECT_GT(planned, 40);
}

/// How far stages of series-parallel graphs are from the best (docs/notes/graphpipe.md).
TEST(GraphPipeExact, FindsTheBestOfAllKindsOfDevices) {
  std::mt19937_64 random(162);
  int planned = 0, both = 0;
  for (int i = 0; i < 90; ++i) {
    GraphPipeProblem problem = random_graphpipe(random, 4, i % 2 == 0);
    if (i % 3 == 0) add_random_strategies(random, problem);
    test::add_random_pool(random, problem);
    if (!finds_the_best(problem, i)) continue;
    ++planned;
    const auto used = test::devices_of_pools(problem, solve_graphpipe_exactly(problem).stages);
    both += used[0] > 0 && used[1] > 0 ? 1 : 0;
  }
  EXPECT_GT(planned, 60);
  EXPECT_GT(both, 20);
}

TEST(GraphPipeExact, SeriesParallelStagesAreBehindBySoMuch) {
  std::mt19937_64 random(62);
  int planned = 0, behind = 0, missed = 0;
  double most = 1;
  for (int i = 0; i < 200; ++i) {
    const GraphPipeProblem problem = random_graphpipe(random, 7, true);
    const GraphPipeSolution exact = solve_graphpipe_exactly(problem);
    const GraphPipeSolution found = solve_graphpipe(problem);
    if (exact.status == Status::infeasible) {
      EXPECT_EQ(found.status, Status::infeasible);
      continue;
    }
    ++planned;
    if (found.status == Status::infeasible) {
      ++missed;
      continue;
    }
    const double ratio = found.time_s / exact.time_s;
    EXPECT_GE(ratio, 1 - 1e-9);
    if (ratio > 1 + 1e-9) ++behind;
    most = std::max(most, ratio);
  }
  EXPECT_EQ(planned, 189);
  EXPECT_LE(behind, 25);
  EXPECT_LE(missed, 3);
  EXPECT_LE(most, 1.2702);
}

TEST(GraphPipeExact, RefusesWhatItCannotSearch) {
  const auto refusal = [](const GraphPipeProblem& problem) {
    try {
      solve_graphpipe_exactly(problem);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  GraphPipeProblem problem = branched_graphpipe(8, 8, 4);
  problem.in_flight = InFlight::table;
  EXPECT_THAT(refusal(problem), HasSubstr("at most 64 nodes, not 65"));
  problem = branched_graphpipe(23, 1, 4);
  problem.in_flight = InFlight::table;
  EXPECT_THAT(refusal(problem), HasSubstr("more than 4096 sets of nodes"));
  problem = branched_graphpipe(3, 14, 4);
  problem.in_flight = InFlight::table;
  EXPECT_THAT(refusal(problem), HasSubstr("more than 1048576 pairs of nested sets"));
  problem = branched_graphpipe(2, 2, 4);
  problem.in_flight = InFlight::least;
  EXPECT_THAT(refusal(problem), HasSubstr("the table's samples in flight"));
}

}  // namespace
}  // namespace braid
