#include "run_torch/shared_work.h"

#include <atomic>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/error.h"

#include "run_torch/exact_settings.h"
#include "run_torch/local_run.h"

namespace braid::test {
namespace {

double apart(const Graph& graph, const Plan& plan, const TrainingSettings& settings) {
  const TrainedModel whole = train_whole(layered_program(graph), plan.global_batch, settings);
  EXPECT_NE(whole.losses.front(), whole.losses.back());
  return difference(train_by_threads(graph, plan, "", settings), whole);
}

TEST(ExpertParallel, TrainsAsOneProcessDoes) {
  const Graph graph = graph_of(divisible_model("mixtral"));
  const TrainingSettings settings = exact_settings(2);
  const Degrees cases[] = {
      {.ep = 2, .dp = 2},
      {.ep = 2, .dp = 4, .stages = 2, .zero = Zero::optimizer},
      {.ep = 4, .dp = 4, .zero = Zero::parameters},
      {.tp = 2, .ep = 2, .sequence_parallel = true, .whole_experts = true},
      {.tp = 2, .ep = 4, .dp = 2, .sequence_parallel = true, .whole_experts = true},
      {.cp = 2, .ep = 4, .dp = 2, .zero = Zero::gradients},
  };
  for (const Degrees& each : cases) {
    EXPECT_LE(apart(graph, sharded_plan(graph, each), settings), kExact)
        << each.tp << each.cp << each.ep << each.dp;
  }
  TrainingSettings adam = exact_settings(3);
  adam.optimizer = OptimizerRule::adam;
  adam.learning_rate = 0.01;
  // Adam divides by gradients, however small.
  EXPECT_LE(apart(graph, sharded_plan(graph, cases[1]), adam), 1e-9);
}

TEST(ExpertParallel, OneExchangeThatIsScaledWronglyIsFound) {
  const Graph graph = graph_of(divisible_model("mixtral"));
  const TrainingSettings settings = exact_settings(1);
  const Plan plan = unrepeated(sharded_plan(graph, {.ep = 2, .dp = 2, .micro_batches = 1}));
  const TrainedModel whole = train_whole(layered_program(graph), plan.global_batch, settings);
  std::atomic<std::int64_t> calls{1};
  for (std::int64_t fault = 0; fault < calls; ++fault) {
    const TrainedModel parts =
        train_by_threads(graph, plan, "", settings, [&](std::int32_t, RankLink& link) {
          return std::make_unique<FaultyCollective>(link, fault, true, &calls);
        });
    EXPECT_GT(difference(parts, whole), 1e3 * kExact) << "exchange " << fault;
  }
  EXPECT_GE(calls, 8);
}

TEST(ExpertParallel, InnerWidthsThatAreShardedTooAreRefused) {
  const Graph graph = graph_of(divisible_model("mixtral"));
  try {
    staged_model(graph, ordered_plan(sharded_plan(graph, {.tp = 2, .ep = 2, .dp = 2})));
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                testing::HasSubstr("stage 1 has expert parallelism 2, which does not go with how "
                                   "block0.moe.experts.weight is sharded"));
  }
}

TEST(ContextParallel, TrainsAsOneProcessDoes) {
  for (const auto& [name, degrees] : {std::pair("gpt2", Degrees{.cp = 2, .dp = 2, .stages = 2}),
                                      {"llama", {.cp = 2, .zero = Zero::parameters}},
                                      {"llama", {.cp = 3, .stages = 3}},
                                      {"uneven", {.cp = 2, .dp = 2, .zero = Zero::optimizer}},
                                      {"t5", {.cp = 2, .stages = 2}},
                                      {"bert", {.cp = 2}},
                                      {"mixtral", {.cp = 2, .dp = 2, .zero = Zero::gradients}}}) {
    const Graph graph = graph_of(divisible_model(name));
    TrainingSettings settings = exact_settings(2);
    settings.learning_rate = 0.001;
    EXPECT_LE(apart(graph, sharded_plan(graph, degrees), settings), kExact) << name;
  }
}

TEST(ContextParallel, EveryCollectiveThatIsScaledWronglyIsFound) {
  const Graph graph = graph_of(divisible_model("llama"));
  const TrainingSettings settings = exact_settings(1);
  const Plan plan = unrepeated(sharded_plan(graph, {.cp = 2, .micro_batches = 1}));
  const TrainedModel whole = train_whole(layered_program(graph), plan.global_batch, settings);
  std::atomic<std::int64_t> calls{1};
  for (std::int64_t fault = 0; fault < calls; ++fault) {
    const TrainedModel parts =
        train_by_threads(graph, plan, "", settings, [&](std::int32_t, RankLink& link) {
          return std::make_unique<FaultyCollective>(link, fault, true, &calls);
        });
    EXPECT_GT(difference(parts, whole), 1e3 * kExact) << "collective " << fault;
  }
  EXPECT_GE(calls, 6);
}

TEST(ContextParallel, WithTensorParallelismIsRefused) {
  const Graph graph = graph_of(divisible_model("gpt2"));
  try {
    staged_model(graph, ordered_plan(sharded_plan(graph, {.tp = 2, .cp = 2})));
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("tensor parallelism 2 and context parallelism 2"));
  }
}

}  // namespace
}  // namespace braid::test
