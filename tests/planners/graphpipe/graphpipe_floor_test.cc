#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "braid/planners/graphpipe/floor.h"
#include "braid/planners/graphpipe/pricing.h"
#include "braid/planners/graphpipe/search.h"

#include "planners/graphpipe_problems.h"

namespace braid {
namespace {

using test::add_random_pool;
using test::add_random_strategies;
using test::random_graphpipe;
using test::series_parallel_partitions;
using test::StageSets;

/// Whether a stage fits with what a sink has in flight.
bool fits(const GraphPipeProblem& problem, const GraphPipeStage& stage) {
  double fixed_bytes = 0, stash_bytes = 0, working_bytes = 0;
  for (const std::int32_t node : stage.nodes) {
    const std::int32_t kind = problem.nodes[static_cast<std::size_t>(node)];
    const GraphPipeCost& cost =
        problem.kinds[static_cast<std::size_t>(kind)][static_cast<std::size_t>(stage.strategy)];
    fixed_bytes += cost.fixed_bytes;
    stash_bytes += cost.stash_bytes;
    working_bytes = std::max(working_bytes, cost.working_bytes);
  }
  const std::int64_t in_flight = std::min(stage.group.k * stage.group.micro_batch, problem.batch);
  return graphpipe_memory_bytes(in_flight, graphpipe_replicas(problem, stage),
                                stage.group.micro_batch, fixed_bytes, stash_bytes, working_bytes) <=
         problem.pool_of(problem.strategies[static_cast<std::size_t>(stage.strategy)]).memory_bytes;
}

/// Fewest weighed devices of a stage of these nodes that keeps the time, straight from the
/// definition.
std::int64_t fewest_of(const GraphPipeProblem& problem, std::vector<std::int32_t> nodes,
                       double time_s) {
  std::int64_t fewest = GraphPipeFloor::kNever;
  const std::vector<std::int32_t> weights = graphpipe_weights(problem);
  GraphPipeStage stage;
  stage.nodes = std::move(nodes);
  std::sort(stage.nodes.begin(), stage.nodes.end());
  stage.group = problem.groups.front();
  for (const std::int64_t samples : problem.device_samples) {
    if (stage.group.micro_batch % samples != 0) continue;
    for (std::size_t w = 0; w < problem.strategies.size(); ++w) {
      stage.strategy = static_cast<std::int32_t>(w);
      stage.devices = stage.group.micro_batch / samples * problem.strategies[w].tensor;
      const GraphPipeStrategy& strategy = problem.strategies[w];
      if (stage.group.micro_batch / samples % strategy.expert != 0) continue;
      if (stage.devices <= problem.pool_of(strategy).devices &&
          graphpipe_stage_time_s(problem, stage) <= time_s && fits(problem, stage)) {
        const std::int64_t weight = weights[static_cast<std::size_t>(strategy.pool)];
        fewest = std::min(fewest, weight * stage.devices);
      }
    }
  }
  return fewest;
}

struct Counted {
  GraphPipeProblem problem;
  GraphPipeShapes form;
  GraphPipeRuns runs;
  GraphPipeFloor floor;
  explicit Counted(const GraphPipeProblem& of)
      : problem(of),
        form(graphpipe_shapes(problem)),
        runs(problem, form, problem.groups),
        floor(form, runs) {}
};

TEST(GraphPipeFloor, EqualsBruteForceOverAllSeriesParallelStages) {
  std::mt19937_64 random(241);
  int possible = 0, impossible = 0;
  for (int i = 0; i < 150; ++i) {
    GraphPipeProblem problem = random_graphpipe(random, 6, false);
    if (i % 2 == 1) add_random_strategies(random, problem);
    if (i % 3 == 1) add_random_pool(random, problem);
    Counted counted(problem);
    const std::vector<StageSets> partitions = series_parallel_partitions(problem);
    const double least_s = graphpipe_bound_s(problem) / static_cast<double>(problem.batch);
    for (const double more : {1.0123, 1.7123, 2.9123, 5.1123}) {
      std::int64_t fewest = GraphPipeFloor::kNever;
      for (const StageSets& partition : partitions) {
        std::int64_t devices = 0;
        for (const std::vector<std::int32_t>& nodes : partition) {
          devices += fewest_of(problem, nodes, more * least_s);
        }
        fewest = std::min(fewest, devices);
      }
      ASSERT_EQ(counted.floor.count(more * least_s), fewest) << i << " " << more;
      (fewest < GraphPipeFloor::kNever ? possible : impossible) += 1;
    }
  }
  EXPECT_GT(possible, 400);
  EXPECT_GT(impossible, 40);
}

TEST(GraphPipeFloor, NoPlanDoesWithFewer) {
  std::mt19937_64 random(242);
  int equal = 0, planned = 0;
  for (int i = 0; i < 100; ++i) {
    GraphPipeProblem problem = random_graphpipe(random, 9, i % 2 == 0);
    add_random_strategies(random, problem);
    if (i % 3 == 0) problem.in_flight = InFlight::least;
    if (i % 4 == 1) add_random_pool(random, problem);
    const GraphPipeSolution found = solve_graphpipe(problem);
    if (found.status == Status::infeasible) continue;
    ++planned;
    Counted counted(problem);
    const std::int32_t fewest = counted.floor.count(found.time_s * (1 + 1e-12));
    const std::vector<std::int32_t> weights = graphpipe_weights(problem);
    const std::vector<std::int64_t> devices = test::devices_of_pools(problem, found.stages);
    const std::int64_t used =
        std::inner_product(weights.begin(), weights.end(), devices.begin(), std::int64_t{0});
    EXPECT_LE(fewest, used) << i;
    EXPECT_EQ(counted.floor.all(), fewest);
    equal += fewest == used ? 1 : 0;
    // With more time they need no more.
    EXPECT_LE(counted.floor.count(found.time_s * 2), fewest) << i;
  }
  EXPECT_GT(planned, 50);
  EXPECT_GT(equal, planned / 2);
}

}  // namespace
}  // namespace braid
