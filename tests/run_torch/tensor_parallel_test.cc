#include <algorithm>
#include <atomic>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/run/torch/torch_training.h"

#include "run/random_job.h"
#include "run_torch/exact_settings.h"
#include "run_torch/local_run.h"
#include "run_torch/shared_work.h"
#include "run_torch/tiny_models.h"
#include "run_torch/trials.h"

namespace braid::test {
namespace {

TEST(TensorParallel, RandomPlansTrainAsOneProcessDoes) {
  std::mt19937_64 random(11);
  int sharded = 0;
  for (int trial = 0; trial < trials("BRAID_RUN_DIVIDED_PLANS", 1); ++trial) {
    for (const TinyModel& model : divisible_models()) {
      const Graph graph = graph_of(model);
      Plan plan = random_plan_for(random, graph);
      divide_stages(random, graph, plan, {1, 2, 2});
      TrainingSettings settings = exact_settings(2);
      settings.learning_rate = 0.0001;
      const TrainedModel whole = train_whole(layered_program(graph), plan.global_batch, settings);
      const TrainedModel parts = train_by_threads(graph, plan, "", settings);
      EXPECT_LE(difference(parts, whole), kExact) << model.name << trial;
      for (const Stage& stage : plan.stages) sharded += stage.tp > 1;
    }
  }
  EXPECT_GT(sharded, 4);
}

TEST(TensorParallel, HeadsOfKeysThatSeveralRanksHold) {
  for (const auto& [name, zero] : {std::pair("llama", Zero::parameters),
                                   {"uneven", Zero::optimizer},
                                   {"mixtral", Zero::none}}) {
    const Graph graph = graph_of(divisible_model(name));
    const bool sequence_parallel = graph.seq_len % 4 == 0;
    const Plan plan = sharded_plan(
        graph,
        {.tp = 4, .dp = 2, .stages = 2, .sequence_parallel = sequence_parallel, .zero = zero});
    const TrainingSettings settings = exact_settings(2);
    const TrainedModel whole = train_whole(layered_program(graph), plan.global_batch, settings);
    EXPECT_LE(difference(train_by_threads(graph, plan, "", settings), whole), kExact) << name;
  }
}

TEST(TensorParallel, WithAdamAndEveryZeroStage) {
  for (const Zero zero : {Zero::none, Zero::optimizer, Zero::gradients, Zero::parameters}) {
    const bool is_odd = static_cast<int>(zero) % 2 == 1;
    const Graph graph = graph_of(divisible_model(is_odd ? "gpt2" : "mixtral"));
    const Plan plan = sharded_plan(
        graph, {.tp = 2, .dp = 2, .sequence_parallel = zero >= Zero::gradients, .zero = zero});
    TrainingSettings settings = exact_settings(3);
    settings.optimizer = OptimizerRule::adam;
    settings.learning_rate = 0.01;
    const TrainedModel whole = train_whole(layered_program(graph), plan.global_batch, settings);
    // Adam divides by gradients, however small.
    EXPECT_LE(difference(train_by_threads(graph, plan, "", settings), whole), 1e-9)
        << static_cast<int>(zero);
  }
}

TEST(TensorParallel, LowerPrecisionsAreAsNearAsTheyCanBe) {
  const Graph graph = graph_of(tiny_models()[1]);
  for (const auto& [type, most] : {std::pair(ElementType::f32, 1e-5), {ElementType::bf16, 5e-2}}) {
    const Plan plan = sharded_plan(graph, {.tp = 2, .sequence_parallel = true});
    TrainingSettings settings = exact_settings(3);
    settings.learning_rate = 0.01;
    settings.type = type;
    const TrainedModel whole = train_whole(layered_program(graph), plan.global_batch, settings);
    EXPECT_LE(difference(train_by_threads(graph, plan, "", settings), whole), most);
  }
}

TEST(TensorParallel, EveryCollectiveThatIsMissingOrScaledWronglyIsFound) {
  const Graph graph = graph_of(tiny_models()[1]);
  for (const bool sequence_parallel : {false, true}) {
    const Plan plan = unrepeated(
        sharded_plan(graph, {.tp = 2, .sequence_parallel = sequence_parallel, .micro_batches = 1}));
    const TrainingSettings settings = exact_settings(1);
    const TrainedModel whole = train_whole(layered_program(graph), plan.global_batch, settings);
    std::atomic<std::int64_t> calls{1};
    int found = 0;
    for (std::int64_t fault = 0; fault < calls; ++fault) {
      const TrainedModel parts =
          train_by_threads(graph, plan, "", settings, [&](std::int32_t, RankLink& link) {
            return std::make_unique<FaultyCollective>(link, fault, true, &calls);
          });
      EXPECT_GT(difference(parts, whole), 1e3 * kExact) << "collective " << fault;
      ++found;
    }
    EXPECT_GT(found, 10);
  }
}

TEST(TensorParallel, AMissingSumIsFound) {
  const Graph graph = graph_of(tiny_models()[0]);
  const Plan plan = unrepeated(sharded_plan(graph, {.tp = 2}));
  const TrainingSettings settings = exact_settings(1);
  const TrainedModel whole = train_whole(layered_program(graph), plan.global_batch, settings);
  std::atomic<std::int64_t> calls{1};
  for (std::int64_t fault = 0; fault < calls; ++fault) {
    bool is_found = false;
    try {
      const TrainedModel parts =
          train_by_threads(graph, plan, "", settings, [&](std::int32_t, RankLink& link) {
            return std::make_unique<FaultyCollective>(link, fault, false, &calls);
          });
      is_found = difference(parts, whole) > 1e3 * kExact;
    } catch (const std::runtime_error& error) {
      is_found = std::string(error.what()).find("ranks have different") == 0;
    }
    EXPECT_TRUE(is_found) << "collective " << fault;
  }
  EXPECT_GT(calls, 20);
}

TEST(TensorParallel, WhatCannotBeShardedIsRefusedByStage) {
  const auto refused = [](const Graph& graph, const Plan& plan) {
    try {
      staged_model(graph, ordered_plan(plan));
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const Graph gpt = graph_of(tiny_models()[0]);
  EXPECT_EQ(refused(gpt, sharded_plan(gpt, {.tp = 2})), "");
  EXPECT_THAT(refused(gpt, sharded_plan(gpt, {.tp = 3})),
              testing::HasSubstr("stage 1 divides block0.attention.qkv by 3 ranks"));
  Plan sharded = sharded_plan(gpt, {.tp = 2});
  sharded.profile.kinds[1][1].sharded = {{"block0.attention.qkv", Split::row}};
  EXPECT_THAT(refused(gpt, sharded), testing::HasSubstr("in a sharding that a search found"));
}

}  // namespace
}  // namespace braid::test
