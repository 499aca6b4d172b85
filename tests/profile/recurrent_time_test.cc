#include "braid/profile/recurrent_time.h"

#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/frontend/model.h"
#include "braid/profile/estimator.h"
#include "braid/profile/operator_time.h"
#include "braid/profile/split_limits.h"
#include "braid/system/system.h"

namespace braid {
namespace {

constexpr double kPeak = 1e14;

Chip chip_with(double on_chip_bytes) {
  Chip chip;
  chip.compute_units = 100;
  chip.memory = {"HBM", 1e11, 1e12};
  chip.on_chip = Memory{"SRAM", on_chip_bytes, 1e13};
  chip.efficiency.kernel_launch_s = 1e-6;
  return chip;
}

TEST(RecurrentTime, StepsWithoutInputsFollowTheWeights) {
  // One row: each step reads 4096 × 1024 weights of two bytes, from memory or from on chip.
  RecurrentShape shape;
  shape.steps = 10;
  shape.gates = 4096;
  shape.state = 1024;
  const double weight_bytes = 4096.0 * 1024 * 2;
  const Chip fits = chip_with(weight_bytes);
  const Chip spills = chip_with(weight_bytes - 1);
  EXPECT_NEAR(recurrent_time(shape, kPeak, spills).forward_s,
              10 * (memory_s(weight_bytes, spills) + 1e-6), 1e-12);
  const double on_chip_s = recurrent_time(shape, kPeak, fits).forward_s;
  EXPECT_GE(on_chip_s, 10 * (weight_bytes / 1e13 + 1e-6));
  EXPECT_LT(on_chip_s, recurrent_time(shape, kPeak, spills).forward_s);
}

TEST(RecurrentTime, NeverBelowThePeakAndLinearInSteps) {
  RecurrentShape shape{100, 64, 4096, 2048, 1024, 2};
  const Chip chip = chip_with(4e7);
  const RecurrentTime time = recurrent_time(shape, kPeak, chip);
  const double gemms_s = 2.0 * 100 * 64 * 4096 * (2048 + 1024) / kPeak;
  EXPECT_GE(time.forward_s, gemms_s);
  EXPECT_GE(time.backward_input_s, gemms_s);
  EXPECT_GE(time.backward_weight_s, gemms_s);
  // Steps wait for each other, the weight gradient does not.
  EXPECT_GE(time.forward_s, time.backward_weight_s);
  shape.input = 0;
  const double steps_s = recurrent_time(shape, kPeak, chip).forward_s;
  shape.steps = 300;
  EXPECT_NEAR(recurrent_time(shape, kPeak, chip).forward_s, 3 * steps_s, 1e-9 * steps_s);
}

TEST(RecurrentTime, SeparatesInputsFromTheState) {
  // The encoder's third layer of GNMT: 1024 inputs and 1024 states for 4096 gates. On one device
  // its cell takes at least its 50 launches, and not as many products as steps on inputs.
  const System system = load_system("dgx-a100:8");
  const Graph graph = load_model("gnmt", {});
  LayerGroups groups;
  groups.tp = groups.cp = groups.ep = span_of(system, 1, 1);
  Execution how;
  how.micro_batch = 64;
  LayerId layer = 0;
  while (graph.layers[static_cast<std::size_t>(layer)].name != "encoder.layer2") ++layer;
  const LayerCost cost = estimate_layer(graph, layer, how, {}, groups, system);
  const Chip& chip = system.groups.front().chip;
  const RecurrentTime cell =
      recurrent_time({50, 64, 4096, 1024, 1024, 2}, *matmul_peak(chip, Dtype::bf16), chip);
  EXPECT_GE(cell.forward_s, 50 * chip.efficiency.kernel_launch_s);
  EXPECT_GE(cost.forward.total_s(), cell.forward_s);
  EXPECT_LE(cost.forward.total_s(), 1.5 * cell.forward_s);
}

TEST(Limits, RecurrentModelsKeepTheirSequenceWhole) {
  const SplitLimits limits = split_limits(load_model("gnmt", {.seq_len = 64, .dims = {}}));
  Execution how;
  EXPECT_EQ(refusal(limits, how), "");
  how.cp = 2;
  EXPECT_NE(refusal(limits, how).find("recurrent"), std::string::npos);
  how.cp = 1;
  how.tp = 2;
  EXPECT_NE(refusal(limits, how), "");
}

TEST(Limits, WithoutASequenceThereIsNoneToSplit) {
  const SplitLimits limits = split_limits(load_model("candle-uno", {}));
  Execution how;
  how.tp = 2;
  EXPECT_EQ(refusal(limits, how), "");
  how.sequence_parallel = true;
  EXPECT_NE(refusal(limits, how).find("sequence"), std::string::npos);
  how = {};
  how.cp = 2;
  EXPECT_NE(refusal(limits, how), "");
}

}  // namespace
}  // namespace braid
