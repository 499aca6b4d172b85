#include "braid/run/checkpoint.h"

#include <algorithm>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/base/file.h"
#include "braid/base/temporary_folder.h"

#include "run/random_job.h"
#include "run_torch/local_run.h"
#include "run_torch/tiny_models.h"

namespace braid::test {
namespace {

TrainingSettings settings_of(std::int64_t iterations, OptimizerRule rule, ElementType type) {
  set_torch_threads(1);
  TrainingSettings settings;
  settings.iterations = iterations;
  settings.optimizer = rule;
  settings.type = type;
  return settings;
}

/// A plan with pipelines, replicas, tensor parallelism and one ZeRO stage.
Plan some_plan(std::mt19937_64& random, const Graph& graph, Zero zero) {
  Plan plan = random_plan_for(random, graph);
  divide_stages(random, graph, plan, {1, 2});
  for (Stage& stage : plan.stages) stage.own->zero = zero;
  return plan;
}

TEST(Checkpoint, GoesOnBitForBit) {
  const TemporaryFolder folder;
  std::mt19937_64 random(21);
  const Graph graph = graph_of(tiny_models()[1]);
  struct Case {
    OptimizerRule rule;
    ElementType type;
    Zero zero;
  };
  const Case cases[] = {{OptimizerRule::sgd, ElementType::f64, Zero::gradients},
                        {OptimizerRule::adam, ElementType::f64, Zero::none},
                        {OptimizerRule::adam, ElementType::f32, Zero::optimizer},
                        {OptimizerRule::adam, ElementType::bf16, Zero::parameters},
                        {OptimizerRule::sgd, ElementType::bf16, Zero::optimizer}};
  for (const auto& [rule, type, zero] : cases) {
    const Plan plan = some_plan(random, graph, zero);
    Checkpoint end, half, resumed;
    const TrainedModel whole = train_on(graph, plan, settings_of(4, rule, type), nullptr, end);
    train_on(graph, plan, settings_of(2, rule, type), nullptr, half);
    const std::string file = folder / "half.safetensors";
    write_checkpoint(file, half);
    const Checkpoint read = read_checkpoint(file);
    const TrainedModel second = train_on(graph, plan, settings_of(2, rule, type), &read, resumed);
    EXPECT_TRUE(std::equal(second.losses.begin(), second.losses.end(), whole.losses.begin() + 2));
    EXPECT_EQ(second.parameters, whole.parameters);
    EXPECT_EQ(resumed.iterations, 4);
    ASSERT_EQ(resumed.tensors.size(), end.tensors.size());
    for (std::size_t t = 0; t < end.tensors.size(); ++t) {
      EXPECT_EQ(resumed.tensors[t].tensor, end.tensors[t].tensor) << end.tensors[t].name;
    }
  }
}

TEST(Checkpoint, AnotherPlanGoesOnFromIt) {
  std::mt19937_64 random(22);
  const Graph graph = graph_of(tiny_models()[0]);
  Plan first = some_plan(random, graph, Zero::optimizer);
  Plan second = some_plan(random, graph, Zero::none);
  while (first.global_batch != second.global_batch || first.stages.size() == second.stages.size()) {
    second = some_plan(random, graph, Zero::optimizer);
  }
  Checkpoint end, half, other;
  const TrainingSettings two = settings_of(2, OptimizerRule::adam, ElementType::f64);
  const TrainingSettings four = settings_of(4, OptimizerRule::adam, ElementType::f64);
  const TrainedModel whole = train_on(graph, first, four, nullptr, end);
  train_on(graph, first, two, nullptr, half);
  const TrainedModel changed = train_on(graph, second, two, &half, other);
  EXPECT_NEAR(changed.losses[0], whole.losses[2], 1e-9);
  EXPECT_NEAR(changed.losses[1], whole.losses[3], 1e-9);
  // Moments count: without them the last loss is another.
  for (NamedTensor& each : half.tensors) {
    if (!each.name.starts_with("exp_avg.")) continue;
    std::fill(each.tensor.data.begin(), each.tensor.data.end(), std::byte{0});
  }
  const TrainedModel forgotten = train_on(graph, second, two, &half, other);
  EXPECT_GT(std::abs(forgotten.losses[1] - whole.losses[3]), 1e-6);
}

TEST(Checkpoint, WhatIsNoneOrOfAnotherRunIsRefused) {
  const TemporaryFolder folder;
  const std::string file = folder / "c.safetensors";
  Checkpoint checkpoint{"tiny", 7, settings_of(1, OptimizerRule::adam, ElementType::f32), {}};
  checkpoint.settings.learning_rate = 0.1;
  write_checkpoint(file, checkpoint);
  const Checkpoint read = read_checkpoint(file);
  EXPECT_EQ(read.iterations, 7);
  EXPECT_EQ(read.settings.learning_rate, 0.1);
  const auto refused = [&](const std::string& model, const TrainingSettings& settings) {
    try {
      check_resumable(read, file, model, settings);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  TrainingSettings settings = checkpoint.settings;
  EXPECT_EQ(refused("tiny", settings), "");
  EXPECT_THAT(refused("other", settings), testing::HasSubstr("the model tiny"));
  settings.seed = 2;
  EXPECT_THAT(refused("tiny", settings), testing::HasSubstr("give --seed 1"));
  settings = checkpoint.settings;
  settings.optimizer = OptimizerRule::sgd;
  EXPECT_THAT(refused("tiny", settings), testing::HasSubstr("give --optimizer adam"));
  settings = checkpoint.settings;
  settings.learning_rate = 0.2;
  EXPECT_THAT(refused("tiny", settings), testing::HasSubstr("give --lr 0.1"));
  settings = checkpoint.settings;
  settings.type = ElementType::f64;
  EXPECT_THAT(refused("tiny", settings), testing::HasSubstr("give --dtype float32"));
  write_safetensors(file, {});
  EXPECT_THROW(read_checkpoint(file), Error);
}

}  // namespace
}  // namespace braid::test
