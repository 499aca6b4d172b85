#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "braid/chip/cores/schedule_cores.h"
#include "braid/frontend/model.h"
#include "braid/graph/graph.h"
#include "braid/graph/training.h"

#include "chip/cores/check_core_schedule.h"
#include "chip/cores/layer_problem.h"
#include "chip/cores/traced_layer.h"

namespace braid {
namespace {

void expect_proven(const CoreProblem& problem, const std::string& which) {
  ASSERT_TRUE(is_valid(problem)) << which;
  const CoreOutcome outcome = schedule_cores(problem);
  const auto faults = check_core_schedule(problem, outcome.schedule);
  EXPECT_TRUE(faults.empty()) << which << ": " << faults.front();
  EXPECT_EQ(outcome.status, CoreStatus::optimal) << which;
  const CoreOutcome list = schedule_cores(problem, 0);
  EXPECT_LE(outcome.schedule.makespan_s, list.schedule.makespan_s) << which;
  EXPECT_LE(list.bound_s, outcome.schedule.makespan_s) << which;
  EXPECT_LT(outcome.work, 30'000) << which;
}

TEST(LayerSchedule, OfATracedLayerIsProven) {
  const Graph training = training_graph(TracedLayer(4, 512, 1024, 16).graph());
  EXPECT_EQ(training.operators.size(), 131U);
  for (const CoreCounts cores : {CoreCounts{1, 1024}, CoreCounts{1, 4}}) {
    expect_proven(layer_problem(training, {"layer"}, {.cores = cores}),
                  std::to_string(cores.vector) + " vector cores");
  }
}

// Phaze schedules what leads to the loss and the gradients of activations.
TEST(LayerSchedule, WithoutGradientsOfWeightsIsProvenOnAnyChip) {
  const Graph training = training_graph(TracedLayer(4, 512, 1024, 16).graph());
  for (const CoreCounts cores : {CoreCounts{1, 1}, CoreCounts{2, 512}, CoreCounts{4, 1024},
                                 CoreCounts{8, 2}, CoreCounts{4, 4}, CoreCounts{64, 64}}) {
    for (const AllCoresRule rule : {AllCoresRule::alone, AllCoresRule::own_kind}) {
      CoreProblem problem =
          without_weight_gradients(training, layer_problem(training, {"layer"}, {.cores = cores}));
      problem.rule = rule;
      expect_proven(problem, std::to_string(cores.tensor) + " tensor cores, " +
                                 std::to_string(cores.vector) + " vector cores");
    }
  }
}

TEST(LayerSchedule, OfALayerOfTheZooIsProven) {
  ModelOptions options;
  options.seq_len = 512;
  const Graph training = training_graph(load_model("llama-3-8b", options));
  expect_proven(layer_problem(training, {"block1"}, {.cores = {2, 512}, .spread = 0.6}),
                "llama-3-8b");
}

}  // namespace
}  // namespace braid
