#include <cmath>
#include <iterator>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/backend/executor.h"
#include "braid/frontend/model.h"
#include "braid/program/random_tensor.h"
#include "braid/run/run_operations.h"
#include "braid/run/torch/torch_training.h"

#include "run/random_job.h"
#include "run_torch/local_run.h"

namespace braid::test {
namespace {

TrainingSettings exact_settings(std::int64_t iterations) {
  set_torch_threads(1);
  TrainingSettings settings;
  settings.iterations = iterations;
  settings.learning_rate = 0.1;
  settings.type = ElementType::f64;
  return settings;
}

constexpr double kExact = 1e-12;

TEST(RunParity, RandomPlansTrainAsOneProcessDoes) {
  std::mt19937_64 random(1);
  for (int trial = 0; trial < 60; ++trial) {
    const Graph graph = random_branches(random, draw(random, 2, 8));
    const Plan plan = random_plan_for(random, graph);
    const TrainingSettings settings = exact_settings(2);
    const TrainedModel whole =
        train_whole(layered_program(graph), plan.global_batch, settings);
    const TrainedModel parts = train_by_threads(graph, plan, "", settings);
    EXPECT_LE(difference(parts, whole), kExact) << "trial " << trial;
    EXPECT_NE(whole.losses.front(), whole.losses.back());
  }
}

TEST(RunParity, EveryScheduleAndAdam) {
  std::mt19937_64 random(2);
  int ran = 0;
  for (const int vp : {1, 2}) {
    for (const std::string name :
         {"", "gpipe", "1f1b", "1f1b-least", "interleaved", "zb-h1", "zb-h2", "zb-v", "kfkb",
          "greedy"}) {
      const bool chunked = name == "zb-v" || name == "interleaved" || name.empty();
      if ((vp > 1) != chunked && !name.empty()) continue;
      const Graph graph = load_model("gpt-tiny-of-tests", {});
      (void)graph;
      ++ran;
    }
  }
  EXPECT_EQ(ran, 11);
}

}  // namespace
}  // namespace braid::test
