#include <algorithm>
#include <limits>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/planners/graphpipe/iteration.h"
#include "braid/planners/graphpipe/pricing.h"
#include "braid/planners/graphpipe/search.h"
#include "braid/planners/graphpipe/shapes.h"
#include "braid/planners/graphpipe/target.h"
#include "braid/schedule/graph_orders.h"

#include "base/pick.h"
#include "planners/graphpipe_iteration.h"
#include "planners/graphpipe_problems.h"
#include "planners/plain_graphpipe.h"

namespace braid {
namespace {

using test::add_random_experts;
using test::add_random_pool;
using test::add_random_strategies;
using test::all_partitions;
using test::best_of;
using test::branched_graphpipe;
using test::devices_of_pools;
using test::random_graphpipe;
using test::series_parallel_partitions;

double found_s(const GraphPipeProblem& problem) {
  const GraphPipeSolution solution = solve_graphpipe(problem);
  if (solution.status == Status::infeasible) return std::numeric_limits<double>::infinity();
  GraphPipeSolution again = solution;
  EXPECT_TRUE(price_graphpipe(problem, again, solution.time_s));
  EXPECT_EQ(again.stages, solution.stages);
  const std::vector<std::int64_t> used = devices_of_pools(problem, solution.stages);
  for (std::size_t p = 0; p < used.size(); ++p) EXPECT_LE(used[p], problem.pools[p].devices);
  std::vector<int> covered(problem.nodes.size(), 0);
  for (const GraphPipeStage& stage : solution.stages) {
    for (const std::int32_t v : stage.nodes) ++covered[static_cast<std::size_t>(v)];
  }
  EXPECT_THAT(covered, ::testing::Each(1));
  return solution.time_s;
}

TEST(GraphPipeSearch, EqualsBruteForceOverAllSeriesParallelStages) {
  std::mt19937_64 random(41);
  int limited = 0;
  for (int i = 0; i < 150; ++i) {
    const GraphPipeProblem problem = random_graphpipe(random, 6, false);
    const double best_s = best_of(problem, series_parallel_partitions(problem));
    ASSERT_DOUBLE_EQ(found_s(problem), best_s) << i;
    limited += best_s == std::numeric_limits<double>::infinity() ? 1 : 0;
  }
  EXPECT_GT(limited, 0);
}

TEST(GraphPipeSearch, IdenticalBranchesArePlannedAsIfTheyDiffered) {
  for (int branches = 2; branches <= 3; ++branches) {
    for (std::int64_t devices = 1; devices <= 5; ++devices) {
      GraphPipeProblem problem = branched_graphpipe(branches, 2, devices);
      problem.in_flight = InFlight::table;
      problem.pools.front().memory_bytes = 40;
      ASSERT_DOUBLE_EQ(found_s(problem), best_of(problem, series_parallel_partitions(problem)));
    }
  }
}

TEST(GraphPipeSearch, MixesMicroBatchSizesAsBruteForceDoes) {
  std::mt19937_64 random(42);
  for (int i = 0; i < 60; ++i) {
    GraphPipeProblem problem = random_graphpipe(random, 4, false);
    problem.groups = {{2, 1}, {4, 1}, {2, 2}};
    problem.mixed = true;
    problem.pools.front().devices = std::min<std::int64_t>(problem.pools.front().devices, 4);
    ASSERT_DOUBLE_EQ(found_s(problem), best_of(problem, series_parallel_partitions(problem))) << i;
  }
}

/// Equal but for rounding; both may be infinite.
void expect_close(double time_s, double best_s, int i) {
  if (time_s == best_s) return;
  EXPECT_NEAR(time_s, best_s, 1e-9 * std::min(time_s, best_s)) << i;
}

TEST(GraphPipeSearch, ChoosesWaysToRunAsBruteForceDoes) {
  std::mt19937_64 random(141);
  int used = 0, mixed = 0;
  for (int i = 0; i < 150; ++i) {
    GraphPipeProblem problem = random_graphpipe(random, 5, false);
    add_random_strategies(random, problem);
    if (i % 3 == 0) problem.pools.front().bandwidth_bytes_per_s = 0.5;  // Copies then decide.
    const double best_s = best_of(problem, series_parallel_partitions(problem));
    expect_close(found_s(problem), best_s, i);
    std::set<std::int32_t> strategies;
    for (const GraphPipeStage& stage : solve_graphpipe(problem).stages)
      strategies.insert(stage.strategy);
    used += !strategies.empty() && *strategies.rbegin() > 0 ? 1 : 0;
    mixed += strategies.size() > 1 ? 1 : 0;
  }
  EXPECT_GT(used, 50);
  EXPECT_GT(mixed, 15);
}

TEST(GraphPipeSearch, SpreadsExpertsAsBruteForceDoes) {
  std::mt19937_64 random(144);
  int spread = 0, whole = 0;
  for (int i = 0; i < 150; ++i) {
    GraphPipeProblem problem = random_graphpipe(random, 5, false);
    add_random_strategies(random, problem);
    add_random_experts(random, problem);
    if (i % 4 == 0) add_random_pool(random, problem);
    const double best_s = best_of(problem, series_parallel_partitions(problem));
    expect_close(found_s(problem), best_s, i);
    for (const GraphPipeStage& stage : solve_graphpipe(problem).stages) {
      const std::int64_t expert =
          problem.strategies[static_cast<std::size_t>(stage.strategy)].expert;
      EXPECT_EQ(graphpipe_replicas(problem, stage) % expert, 0) << i;
      ++(expert > 1 ? spread : whole);
    }
  }
  EXPECT_GT(spread, 15);
  EXPECT_GT(whole, 30);
}

TEST(GraphPipeSearch, IdenticalBranchesMayRunInUnlikeWays) {
  std::mt19937_64 random(142);
  for (int i = 0; i < 30; ++i) {
    GraphPipeProblem problem = branched_graphpipe(2 + i % 2, 2 - i % 2, 1 + i % 6);
    problem.in_flight = InFlight::table;
    problem.pools.front().memory_bytes = 40;
    add_random_strategies(random, problem);
    const double best_s = best_of(problem, series_parallel_partitions(problem));
    expect_close(found_s(problem), best_s, i);
  }
}

/// The last strategy of a problem taken away.
GraphPipeProblem without_last_strategy(GraphPipeProblem problem) {
  problem.strategies.pop_back();
  for (GraphPipeKind& kind : problem.kinds) kind.pop_back();
  return problem;
}

TEST(GraphPipeSearch, OneMoreWayNeverHurts) {
  std::mt19937_64 random(143);
  int better = 0;
  for (int i = 0; i < 100; ++i) {
    GraphPipeProblem problem = random_graphpipe(random, 9, false);
    add_random_strategies(random, problem);
    const double before_s = found_s(without_last_strategy(problem));
    const double time_s = found_s(problem);
    EXPECT_LE(time_s, before_s * (1 + 1e-12)) << i;
    better += time_s < before_s ? 1 : 0;
  }
  EXPECT_GT(better, 5);
}

TEST(GraphPipeSearch, ChoosesKindsOfDevicesAsBruteForceDoes) {
  std::mt19937_64 random(151);
  int both = 0, none = 0;
  for (int i = 0; i < 150; ++i) {
    GraphPipeProblem problem = random_graphpipe(random, 5, false);
    problem.pools.front().devices = std::min<std::int64_t>(problem.pools.front().devices, 4);
    if (i % 5 == 0) add_random_strategies(random, problem);
    add_random_pool(random, problem);
    if (i % 10 == 1) add_random_pool(random, problem);
    const double best_s = best_of(problem, series_parallel_partitions(problem));
    expect_close(found_s(problem), best_s, i);
    const auto used = devices_of_pools(problem, solve_graphpipe(problem).stages);
    both += used[0] > 0 && used[1] > 0 ? 1 : 0;
    none += best_s == std::numeric_limits<double>::infinity() ? 1 : 0;
  }
  EXPECT_GT(both, 50);
  EXPECT_GT(none, 0);
}

TEST(GraphPipeSearch, IdenticalBranchesMayRunOnUnlikeDevices) {
  std::mt19937_64 random(152);
  int both = 0;
  for (int i = 0; i < 30; ++i) {
    GraphPipeProblem problem = branched_graphpipe(2 + i % 2, 2 - i % 2, 1 + i % 4);
    problem.in_flight = InFlight::table;
    problem.pools.front().memory_bytes = 40;
    add_random_pool(random, problem);
    const double best_s = best_of(problem, series_parallel_partitions(problem));
    expect_close(found_s(problem), best_s, i);
    const auto used = devices_of_pools(problem, solve_graphpipe(problem).stages);
    both += used[0] > 0 && used[1] > 0 ? 1 : 0;
  }
  EXPECT_GT(both, 10);
}

/// The first kind of devices and the second in place of each other, and with them their ways.
GraphPipeProblem with_pools_swapped(GraphPipeProblem problem) {
  std::swap(problem.pools.at(0), problem.pools.at(1));
  for (GraphPipeStrategy& strategy : problem.strategies) strategy.pool = 1 - strategy.pool;
  std::reverse(problem.strategies.begin(), problem.strategies.end());
  for (GraphPipeKind& kind : problem.kinds) std::reverse(kind.begin(), kind.end());
  return problem;
}

TEST(GraphPipeSearch, KindsOfDevicesHaveNoOrderAndMoreNeverHurt) {
  std::mt19937_64 random(153);
  int better = 0;
  for (int i = 0; i < 60; ++i) {
    GraphPipeProblem problem = random_graphpipe(random, 9, i % 2 == 0);
    if (i % 4 == 1) add_random_strategies(random, problem);
    const double alone_s = found_s(problem);
    add_random_pool(random, problem);
    const double time_s = found_s(problem);
    EXPECT_LE(time_s, alone_s * (1 + 1e-12)) << i;
    expect_close(found_s(with_pools_swapped(problem)), time_s, i);
    GraphPipeProblem more = problem;
    ++more.pools.at(i % 2).devices;
    EXPECT_LE(found_s(more), time_s * (1 + 1e-12)) << i;
    better += time_s < alone_s * (1 - 1e-9) ? 1 : 0;
  }
  EXPECT_GT(better, 20);
}

TEST(GraphPipeSearch, DevicesThatNoWayIsForChangeNothing) {
  std::mt19937_64 random(154);
  for (int i = 0; i < 60; ++i) {
    GraphPipeProblem problem = random_graphpipe(random, 8, i % 2 == 0);
    if (i % 3 == 0) add_random_strategies(random, problem);
    if (i % 3 == 1) problem.in_flight = InFlight::least;
    const GraphPipeSolution alone = solve_graphpipe(problem);
    problem.pools.push_back({3, 1e9, 4, 1, 0});
    EXPECT_EQ(solve_graphpipe(problem).stages, alone.stages) << i;
  }
}

TEST(GraphPipeSearch, LikeDevicesInTwoPartsAreNoBetterThanInOne) {
  std::mt19937_64 random(155);
  int equal = 0;
  for (int i = 0; i < 60; ++i) {
    GraphPipeProblem whole = random_graphpipe(random, 7, i % 2 == 0);
    whole.pools.front().devices = 2 + i % 5;
    const double whole_s = found_s(whole);
    GraphPipeProblem parts = whole;
    parts.pools.front().devices = 1 + i % 2;
    GraphPipePool other = parts.pools.front();
    other.devices = whole.pools.front().devices - parts.pools.front().devices;
    if (other.devices == 0) continue;
    parts.pools.push_back(other);
    parts.strategies.push_back(parts.strategies.front());
    parts.strategies.back().pool = 1;
    for (GraphPipeKind& kind : parts.kinds) kind.push_back(kind.front());
    const double time_s = found_s(parts);
    EXPECT_GE(time_s, whole_s * (1 - 1e-12)) << i;
    equal += time_s <= whole_s * (1 + 1e-12) ? 1 : 0;
  }
  EXPECT_GT(equal, 20);
}

TEST(GraphPipeSearch, RecomputesOnlyWhereMemoryAsksForIt) {
  GraphPipeProblem problem = branched_graphpipe(2, 2, 4);
  problem.in_flight = InFlight::table;
  problem.strategies.emplace_back();
  GraphPipeCost slower = problem.kinds[0][0];
  for (double& time_s : slower.backward_s) time_s *= 1.5;
  slower.stash_bytes = 0;
  problem.kinds[0].push_back(slower);
  int recomputing = 0;
  double before_s = std::numeric_limits<double>::infinity();
  for (const double memory_bytes : {2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 1e9}) {
    problem.pools.front().memory_bytes = memory_bytes;
    const double time_s = found_s(problem);
    EXPECT_LE(time_s, before_s);
    EXPECT_LE(time_s, found_s(without_last_strategy(problem)));
    before_s = time_s;
    const std::vector<GraphPipeStage> stages = solve_graphpipe(problem).stages;
    const bool some = std::any_of(stages.begin(), stages.end(),
                                  [](const GraphPipeStage& stage) { return stage.strategy == 1; });
    recomputing += some ? 1 : 0;
    if (memory_bytes == 1e9) {
      EXPECT_FALSE(some);
    }
  }
  EXPECT_GT(recomputing, 0);
}

TEST(GraphPipeSearch, WaysThatAreOneSaveNothing) {
  std::mt19937_64 random(144);
  for (int i = 0; i < 40; ++i) {
    GraphPipeProblem problem = random_graphpipe(random, 8, i % 2 == 0);
    const GraphPipeSolution alone = solve_graphpipe(problem);
    problem.strategies.push_back(problem.strategies.front());
    for (GraphPipeKind& kind : problem.kinds) kind.push_back(kind.front());
    const GraphPipeSolution twice = solve_graphpipe(problem);
    EXPECT_EQ(alone.stages, twice.stages) << i;
  }
}

TEST(GraphPipeSearch, IsNeverBetterThanTheBestOfAllGraphPipelines) {
  std::mt19937_64 random(43);
  int equal = 0;
  for (int i = 0; i < 60; ++i) {
    const GraphPipeProblem problem = random_graphpipe(random, 5, true);
    const double best_s = best_of(problem, all_partitions(problem));
    const double time_s = found_s(problem);
    ASSERT_GE(time_s, best_s * (1 - 1e-12)) << i;
    equal += time_s <= best_s * (1 + 1e-12) ? 1 : 0;
  }
  EXPECT_GT(equal, 40);
}

TEST(GraphPipeSearch, LeastInFlightCountsHoldWhenRun) {
  std::mt19937_64 random(44);
  int planned = 0;
  for (int i = 0; i < 150; ++i) {
    GraphPipeProblem problem = random_graphpipe(random, 8, i % 2 == 0);
    problem.in_flight = InFlight::least;
    if (i % 3 == 0) add_random_strategies(random, problem);
    const GraphPipeSolution solution = solve_graphpipe(problem);
    if (solution.status == Status::infeasible) continue;
    ++planned;
    TimedGraph timed = timed_graph_of(problem, solution);
    double period_s = solution.time_s * static_cast<double>(solution.stages[0].group.micro_batch);
    std::vector<std::int64_t> warm_ups, k;
    for (std::size_t s = 0; s < solution.stages.size(); ++s) {
      warm_ups.push_back(solution.stages[s].in_flight / solution.stages[s].group.micro_batch);
      k.push_back(1);
      timed.costs[s].reduce_gradients_s = 0;
    }
    const OrderTiming timing = time_order(timed, k_f_k_b_order(timed.graph, k, warm_ups));
    const auto count = static_cast<double>(timed.graph.micro_batches(0));
    // The stages keep the rate: one more micro-batch takes one more period.
    EXPECT_LE(timing.time_s, ((count - 1) * period_s + solution.fill_s) * (1 + 1e-9)) << i;
    for (std::size_t s = 0; s < warm_ups.size(); ++s) {
      EXPECT_LE(timing.devices[s].peak_bytes, problem.pools.front().memory_bytes * (1 + 1e-12));
    }
  }
  EXPECT_GT(planned, 75);
}

/// With little memory and slow links, so that what is in flight decides.
void make_short_of_memory(std::mt19937_64& random, GraphPipeProblem& problem) {
  problem.in_flight = InFlight::least;
  problem.pools.front().memory_bytes = test::pick(random, 20, 80);
  if (test::pick(random, 0, 1) == 0) problem.pools.front().bandwidth_bytes_per_s = 1;
}

/// Of the slowest stage.
double slowest_s(const GraphPipeSolution& solution) {
  double most_s = 0;
  for (const GraphPipeStage& stage : solution.stages) most_s = std::max(most_s, stage.time_s);
  return most_s;
}

TEST(GraphPipeSearch, LeastInFlightEqualsBruteForce) {
  std::mt19937_64 random(157);
  int planned = 0, slower = 0;
  for (int i = 0; i < 500; ++i) {
    GraphPipeProblem problem = random_graphpipe(random, 6, false);
    make_short_of_memory(random, problem);
    if (i % 4 == 0) problem = linear_graphpipe(problem);
    if (i % 8 == 1) problem.groups = {{1, 1}, {2, 1}, {4, 1}};
    const double best_s = best_of(problem, series_parallel_partitions(problem));
    expect_close(found_s(problem), best_s, i);
    if (best_s == std::numeric_limits<double>::infinity()) continue;
    ++planned;
    slower += slowest_s(solve_graphpipe(problem)) < best_s * (1 - 1e-9) ? 1 : 0;
  }
  EXPECT_GT(planned, 300);
  EXPECT_GT(slower, 4);
}

TEST(GraphPipeSearch, LeastInFlightChoosesWaysAndKindsOfDevicesAsBruteForceDoes) {
  std::mt19937_64 random(158);
  int planned = 0, both = 0;
  for (int i = 0; i < 80; ++i) {
    GraphPipeProblem problem = random_graphpipe(random, 5, false);
    make_short_of_memory(random, problem);
    problem.pools.front().devices = std::min<std::int64_t>(problem.pools.front().devices, 4);
    if (i % 3 != 0) add_random_strategies(random, problem);
    if (i % 3 != 1) add_random_pool(random, problem);
    if (i % 12 == 0) add_random_pool(random, problem);
    const double best_s = best_of(problem, series_parallel_partitions(problem));
    expect_close(found_s(problem), best_s, i);
    planned += best_s < std::numeric_limits<double>::infinity() ? 1 : 0;
    const auto used = devices_of_pools(problem, solve_graphpipe(problem).stages);
    both += used.size() > 1 && used[0] > 0 && used[1] > 0 ? 1 : 0;
  }
  EXPECT_GT(planned, 60);
  EXPECT_GT(both, 20);
}

/// Where the quick search finds no plan, the full one mostly proves that there is none.
TEST(GraphPipeSearch, QuickSearchMissesPlansAndTheFullOneDoesNot) {
  std::mt19937_64 random(159);
  int missed = 0;
  for (int i = 0; i < 400; ++i) {
    GraphPipeProblem problem = random_graphpipe(random, 10, false);
    make_short_of_memory(random, problem);
    problem.pools.front().devices = 12;
    const GraphPipeSolution solution = solve_graphpipe(problem);
    if (solution.status == Status::infeasible) continue;
    const GraphPipeShapes form = graphpipe_shapes(problem);
    GraphPipeTargetSearch search(problem, form, problem.groups);
    EXPECT_FALSE(search.plans_at(solution.time_s, GraphPipeEffort::full).empty()) << i;
    EXPECT_TRUE(search.plans_at(solution.time_s * (1 - 2e-9), GraphPipeEffort::full).empty()) << i;
    missed += search.plans_at(solution.time_s, GraphPipeEffort::quick).empty() ? 1 : 0;
  }
  EXPECT_GT(missed, 0);
  EXPECT_LT(missed, 10);
}

TEST(GraphPipeSearch, RunsMicroBatchesOneByOneWhereMemoryHasNoRoomForMore) {
  GraphPipeProblem problem = linear_graphpipe(branched_graphpipe(2, 2, 5));
  problem.most_stage_devices = 1;
  problem.pools.front().memory_bytes = 6;  // A node and its stash of one micro-batch, and no other.
  problem.groups = {{4, 1}};
  const GraphPipeSolution one_by_one = solve_graphpipe(problem);
  ASSERT_EQ(one_by_one.stages.size(), 5U);
  EXPECT_NEAR(4 * one_by_one.time_s, one_by_one.fill_s, 1e-9 * one_by_one.fill_s);
  for (const GraphPipeStage& stage : one_by_one.stages) EXPECT_EQ(stage.in_flight, 4);
  problem.pools.front().memory_bytes = 1e9;
  EXPECT_DOUBLE_EQ(solve_graphpipe(problem).time_s, slowest_s(solve_graphpipe(problem)));
}

/// What an end of a branch leaves of it may share a stage with any other branch, whichever of them
/// come before.
TEST(GraphPipeSearch, RestsOfBranchesShareStagesWithAnyOther) {
  GraphPipeProblem problem = branched_graphpipe(2, 2, 2);
  problem.nodes.assign(5, 0);
  problem.edges = {{1, 2, 0}, {0, 4, 3}, {2, 4, 3}, {3, 4, 2}};
  GraphPipeCost cost;
  cost.forward_s = {2, 3, 5, 9};
  cost.backward_s = {8, 15, 29, 57};
  cost.fixed_bytes = cost.gradient_bytes = 5;
  cost.stash_bytes = 3;
  cost.working_bytes = 2;
  problem.kinds = {{cost, cost}};
  for (double& time_s : problem.kinds[0][1].forward_s) time_s *= 1.5625;
  for (double& time_s : problem.kinds[0][1].backward_s) time_s *= 1.5625;
  problem.overlap = false;
  problem.pools.front().memory_bytes = 74;
  problem.groups = {{8, 1}};
  problem.pools.push_back({1, 127, 4, 1, 8});
  problem.strategies = {{}, {1, 1, 1}};
  for (const InFlight rule : {InFlight::table, InFlight::least}) {
    problem.in_flight = rule;
    const double best_s = best_of(problem, series_parallel_partitions(problem));
    EXPECT_DOUBLE_EQ(found_s(problem), best_s);
    EXPECT_DOUBLE_EQ(best_s, 26.28125);
  }
}

/// Seconds of the shortest path through the stages and back, infinite when there is no plan.
double shortest_s(const GraphPipeFrontier& plans) {
  double least_s = std::numeric_limits<double>::infinity();
  for (const GraphPipeLabel& plan : plans) least_s = std::min(least_s, plan.round_s);
  return least_s;
}

TEST(GraphPipeSearch, LeavingOutWhatIsTooLongAlreadyLosesNothing) {
  std::mt19937_64 random(156);
  int planned = 0, left_out = 0;
  for (int i = 0; i < 120; ++i) {
    GraphPipeProblem problem = random_graphpipe(random, 8, i % 2 == 0);
    problem.in_flight = InFlight::least;
    if (i % 3 == 0) add_random_strategies(random, problem);
    if (i % 4 == 0) add_random_pool(random, problem);
    const GraphPipeShapes form = graphpipe_shapes(problem);
    GraphPipeTargetSearch search(problem, form, problem.groups);
    const double least_s = graphpipe_bound_s(problem) / static_cast<double>(problem.batch);
    const auto effort = i % 5 == 0 ? GraphPipeEffort::full : GraphPipeEffort::quick;
    for (const double more : {1.0123, 1.3123, 1.7123, 2.9123}) {
      const double with_s = shortest_s(search.plans_at(more * least_s, effort));
      const std::size_t with = search.choices().size();
      const double without_s = shortest_s(search.plans_at(more * least_s, effort, true));
      EXPECT_EQ(with_s, without_s) << i << ' ' << more;
      EXPECT_LE(with, search.choices().size()) << i << ' ' << more;
      planned += with_s < std::numeric_limits<double>::infinity() ? 1 : 0;
      left_out += with < search.choices().size() ? 1 : 0;
    }
  }
  EXPECT_GT(planned, 200);
  EXPECT_GT(left_out, 50);
}

TEST(GraphPipeSearch, MoreDevicesMemoryAndBandwidthNeverHurt) {
  std::mt19937_64 random(45);
  for (int i = 0; i < 60; ++i) {
    GraphPipeProblem problem = random_graphpipe(random, 9, i % 2 == 0);
    if (i % 2 == 1) add_random_strategies(random, problem);
    if (i % 4 < 2) make_short_of_memory(random, problem);
    const double before_s = found_s(problem);
    GraphPipeProblem larger = problem;
    (i % 3 == 0 ? larger.pools.front().memory_bytes : larger.pools.front().bandwidth_bytes_per_s) *=
        2;
    larger.pools.front().devices += i % 2;
    EXPECT_LE(found_s(larger), before_s * (1 + 1e-12)) << i;
  }
}

TEST(GraphPipeSearch, IsNeverWorseThanAlgorithm2AsListed) {
  std::mt19937_64 random(46);
  int better = 0;
  for (int i = 0; i < 100; ++i) {
    const GraphPipeProblem problem = random_graphpipe(random, 8, false);
    const double plain_s = test::plain_graphpipe_s(problem, 1e-6);
    const double time_s = found_s(problem);
    ASSERT_LE(time_s, plain_s * (1 + 1e-12)) << i;
    better += time_s < plain_s * (1 - 1e-5) ? 1 : 0;
  }
  EXPECT_GT(better, 0);
}

TEST(GraphPipeSearch, EqualsAlgorithm2OnChains) {
  std::mt19937_64 random(47);
  for (int i = 0; i < 60; ++i) {
    const GraphPipeProblem problem = linear_graphpipe(random_graphpipe(random, 8, true));
    const double plain_s = test::plain_graphpipe_s(problem, 1e-9);
    const double time_s = found_s(problem);
    if (plain_s == std::numeric_limits<double>::infinity()) {
      EXPECT_EQ(time_s, plain_s);
    } else {
      EXPECT_NEAR(time_s, plain_s, 2e-9 * plain_s) << i;
    }
  }
}

TEST(GraphPipeSearch, IterationsAreNeverLongerThanThoseOfALineOfStages) {
  std::mt19937_64 random(48);
  int shorter = 0;
  for (int i = 0; i < 60; ++i) {
    GraphPipeProblem problem = random_graphpipe(random, 8, i % 2 == 0);
    problem.in_flight = InFlight::least;
    problem.groups = {{1, 1}, {2, 1}, {4, 1}, {8, 1}};
    const GraphPipeProblem linear = linear_graphpipe(problem);
    const GraphPipeSolution line = test::shortest_iteration(linear);
    const GraphPipeSolution graph = test::shortest_iteration(problem);
    if (line.stages.empty()) continue;
    ASSERT_FALSE(graph.stages.empty());
    const double line_s = test::graphpipe_iteration_s(linear, line);
    const double graph_s = test::graphpipe_iteration_s(problem, graph);
    EXPECT_LE(graph_s, line_s * (1 + 1e-12)) << i;
    shorter += graph_s < line_s * (1 - 1e-9) ? 1 : 0;
  }
  EXPECT_GT(shorter, 10);
}

TEST(GraphPipeSearch, BadProblemsAreRefused) {
  const auto bad = [](auto change) {
    GraphPipeProblem problem = branched_graphpipe(2, 2, 4);
    change(problem);
    try {
      solve_graphpipe(problem);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  using ::testing::HasSubstr;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(bad([](auto& p) { p.nodes.clear(); }), HasSubstr("nodes"));
  EXPECT_THAT(bad([](auto& p) { p.nodes[0] = 7; }), HasSubstr("kind does not exist"));
  EXPECT_THAT(bad([](auto& p) { p.pools.front().devices = 0; }), HasSubstr("devices"));
  EXPECT_THAT(bad([](auto& p) { p.batch = -1; }), HasSubstr("batch"));
  EXPECT_THAT(bad([](auto& p) { p.batch = 6; }), HasSubstr("do not divide the batch of 6"));
  EXPECT_THAT(bad([](auto& p) { p.groups.clear(); }), HasSubstr("groups"));
  EXPECT_THAT(bad([](auto& p) { p.groups[0].k = 2; }), HasSubstr("table"));
  EXPECT_THAT(bad([](auto& p) { p.mixed = true; }), HasSubstr("table"));
  EXPECT_THAT(bad([](auto& p) { p.device_samples = {2, 1, 4, 8}; }), HasSubstr("ascend"));
  EXPECT_THAT(bad([](auto& p) { p.kinds[0][0].forward_s.pop_back(); }), HasSubstr("kinds"));
  EXPECT_THAT(bad([](auto& p) { p.strategies.clear(); }), HasSubstr("strategies"));
  EXPECT_THAT(bad([](auto& p) { p.strategies.emplace_back(); }), HasSubstr("in every strategy"));
  EXPECT_THAT(bad([](auto& p) { p.strategies[0].tensor = 0; }), HasSubstr("a replica must have"));
  EXPECT_THAT(bad([](auto& p) { p.strategies[0].copies = 2; }), HasSubstr("one on each device"));
  EXPECT_THAT(bad([&](auto& p) { p.kinds[0][0].stash_bytes = nan; }), HasSubstr("kinds"));
  EXPECT_THAT(bad([](auto& p) { p.pools.front().bandwidth_bytes_per_s = 0; }),
              HasSubstr("bandwidth"));
  EXPECT_THAT(bad([](auto& p) { p.pools.front().devices_per_node = 0; }), HasSubstr("node"));
  EXPECT_THAT(bad([&](auto& p) { p.pools.front().node_bandwidth_bytes_per_s = nan; }),
              HasSubstr("node"));
  EXPECT_THAT(bad([&](auto& p) { p.pools.front().memory_bytes = nan; }), HasSubstr("memory"));
  EXPECT_THAT(bad([&](auto& p) { p.pools.push_back({1, nan, 1, 1, 0}); }), HasSubstr("memory"));
  EXPECT_THAT(bad([&](auto& p) { p.pools.assign(5, p.pools.front()); }),
              HasSubstr("at most 4 kinds"));
  EXPECT_THAT(bad([](auto& p) { p.strategies[0].pool = 1; }),
              HasSubstr("kind of devices does not"));
  EXPECT_THAT(bad([](auto& p) { p.edges[0].target = 0; }), HasSubstr("backwards"));
  EXPECT_THAT(bad([](auto& p) { p.edges[0].bytes = -1; }), HasSubstr("edges"));
}

}  // namespace
}  // namespace braid
