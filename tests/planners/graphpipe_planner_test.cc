#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/planners/graphpipe_job.h"
#include "braid/planners/planner.h"
#include "braid/schedule/timeline.h"

#include "planners/tiny_job.h"

namespace braid {
namespace {

using ::testing::HasSubstr;

Job tiny_job(const Graph& graph) {
  Job job;
  job.graph = &graph;
  job.model_source = "tiny";
  job.global_batch = 8;
  return job;
}

TEST(GraphPipePlanner, PlansFitTheDevicesAndMemoryAndCoverTheLayers) {
  std::mt19937_64 random(51);
  int planned = 0;
  for (int i = 0; i < 40; ++i) {
    const Graph graph = testing::tiny_graph(random, testing::pick(random, 1, 6));
    const double memory = 1e6 * testing::pick(random, 1, 60);
    const System system = testing::tiny_system(random, testing::pick(random, 1, 6), memory);
    const Outcome outcome = plan_graphpipe(tiny_job(graph), system, {}, {}, {});
    if (outcome.candidates.empty()) {
      ASSERT_TRUE(outcome.infeasibility);
      continue;
    }
    ++planned;
    const Candidate& best = outcome.candidates.front();
    std::set<std::int64_t> devices;
    std::set<std::int32_t> layers;
    std::size_t device_count = 0;
    for (const Stage& stage : best.plan.stages) {
      devices.insert(stage.devices.begin(), stage.devices.end());
      device_count += stage.devices.size();
      layers.insert(stage.chunks[0].layers.begin(), stage.chunks[0].layers.end());
      EXPECT_EQ(8 % (stage.dp * stage.own->micro_batch), 0);
    }
    EXPECT_EQ(devices.size(), device_count);
    EXPECT_LE(*devices.rbegin(), system.device_count - 1);
    EXPECT_EQ(layers.size(), graph.layers.size());
    EXPECT_LE(best.metrics.peak_memory_bytes, memory);
    EXPECT_EQ(best.metrics.iteration_time_s, measure(best.plan).iteration_time_s);
    EXPECT_GE(best.metrics.iteration_time_s, outcome.physical_bound.time_s * (1 - 1e-9));
  }
  EXPECT_GT(planned, 10);
}

TEST(GraphPipePlanner, StagesOfAnyShapeOnlyAddPlans) {
  std::mt19937_64 random(53);
  int planned = 0;
  for (int i = 0; i < 30; ++i) {
    const Graph graph = testing::tiny_graph(random, testing::pick(random, 1, 6));
    const double memory = 1e6 * testing::pick(random, 5, 60);
    const System system = testing::tiny_system(random, testing::pick(random, 1, 6), memory);
    SpaceOptions any;
    any.graph_stages = GraphStages::exact;
    const Outcome plain = plan_graphpipe(tiny_job(graph), system, {}, {}, {});
    const Outcome exact = plan_graphpipe(tiny_job(graph), system, any, {}, {});
    EXPECT_THAT(exact.assumptions.back(), HasSubstr("with series-parallel stages: "));
    if (plain.candidates.empty()) continue;
    ++planned;
    ASSERT_FALSE(exact.candidates.empty());
    EXPECT_LE(exact.objective, plain.objective);
    EXPECT_GT(exact.evaluated, plain.evaluated);
  }
  EXPECT_GT(planned, 10);
}

TEST(GraphPipePlanner, SaysWhatItCannotDo) {
  std::mt19937_64 random(52);
  const Graph graph = testing::tiny_graph(random, 3);
  const System system = testing::tiny_system(random, 4, 1e9);
  const auto refusal = [&](const SpaceOptions& space) {
    try {
      plan_graphpipe(tiny_job(graph), system, space, {}, {});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  SpaceOptions context;
  context.cp = 2;
  EXPECT_THAT(refusal(context), HasSubstr("--cp: the graphpipe planner cannot do that"));
  SpaceOptions samples;
  samples.micro_batch = 3;
  EXPECT_THAT(refusal(samples),
              HasSubstr("3 samples are no power of two that divides the batch of 8"));
  samples.micro_batch = 2;
  const Outcome pairs = plan_graphpipe(tiny_job(graph), system, samples, {}, {});
  for (const Stage& stage : pairs.candidates.at(0).plan.stages) {
    EXPECT_EQ(stage.own->micro_batch, 2);
  }
}

}  // namespace
}  // namespace braid
