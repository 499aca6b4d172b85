#include "braid/profile/expert_time.h"

#include <gtest/gtest.h>

#include "braid/frontend/model.h"
#include "braid/profile/estimator.h"
#include "braid/profile/split_limits.h"

namespace braid {
namespace {

/// One unit that does 1e12 FLOP/s, 1e9 bytes/s, no launches.
Chip plain_chip() {
  Chip chip;
  chip.name = "test";
  chip.compute_units = 1;
  chip.memory.bytes_per_s = 1e9;
  chip.efficiency = {};
  chip.efficiency.matmul_peak_fraction = 1;
  chip.efficiency.memory_peak_fraction = 1;
  chip.efficiency.memory_half_bytes = 0;
  chip.efficiency.kernel_launch_s = 0;
  chip.efficiency.tile_m = chip.efficiency.tile_n = chip.efficiency.tile_k = 16;
  return chip;
}

ExpertWork gated() {
  ExpertWork shape;
  shape.experts = 4;
  shape.tokens = 64;
  shape.visits = 128;
  shape.hidden = 64;
  shape.inner = 32;
  shape.matrices = 3;
  return shape;
}

TEST(ExpertTime, OfProductsAloneIsTheirArithmetic) {
  Chip chip = plain_chip();
  chip.memory.bytes_per_s = 1e30;
  const OperatorTimes times = expert_times(gated(), 1e12, chip);
  const double flops = 2.0 * 128 * 64 * 32 * 3;
  EXPECT_NEAR(times.forward_s, flops / 1e12, 1e-15);
  EXPECT_NEAR(times.backward_input_s, flops / 1e12, 1e-15);
  EXPECT_NEAR(times.backward_weight_s, flops / 1e12, 1e-15);
}

TEST(ExpertTime, OfTrafficAloneIsWhatEachKernelReadsAndWrites) {
  const ExpertWork shape = gated();
  const OperatorTimes times = expert_times(shape, 1e30, plain_chip());
  const double outer = 2 * 128 * 64, inner = 2 * 128 * 32, held = 2 * 64 * 64;
  const double weights = 4 * 64 * 32;
  const double products = (outer + 2 * inner) + (inner + outer);
  EXPECT_NEAR(times.forward_s * 1e9,
              products + 2 * 3 * weights + 2 * outer + 3 * inner + (outer + held), 1e-3);
  EXPECT_NEAR(times.backward_input_s * 1e9,
              products + 2 * 3 * weights + (outer + held) + 5 * inner + (outer + held), 1e-3);
  // Gradients in f32 are read and written.
  EXPECT_NEAR(times.backward_weight_s * 1e9, products + 8 * 3 * weights, 1e-3);
}

TEST(ExpertTime, NarrowProductsConvertTheirOperands) {
  ExpertWork shape = gated();
  const OperatorTimes wide = expert_times(shape, 1e30, plain_chip());
  shape.is_narrow = true;
  const OperatorTimes narrow = expert_times(shape, 1e30, plain_chip());
  const double outer = 2 * 128 * 64, inner = 2 * 128 * 32;
  EXPECT_NEAR((narrow.forward_s - wide.forward_s) * 1e9, 2 * (outer + inner), 1e-3);
  EXPECT_NEAR((narrow.backward_input_s - wide.backward_input_s) * 1e9, 2 * (outer + 2 * inner),
              1e-3);
  EXPECT_DOUBLE_EQ(narrow.backward_weight_s, wide.backward_weight_s);
}

TEST(ExpertTime, BiasesAndClampsAreTrafficOfTheirOwn) {
  const double outputs = 128 * 64, inner = 128 * 32;
  const auto added_s = [](bool biased, bool clamped) {
    ExpertWork shape = gated();
    const OperatorTimes plain = expert_times(shape, 1e30, plain_chip());
    shape.biased = biased;
    shape.clamped = clamped;
    OperatorTimes times = expert_times(shape, 1e30, plain_chip());
    times.forward_s -= plain.forward_s;
    times.backward_input_s -= plain.backward_input_s;
    times.backward_weight_s -= plain.backward_weight_s;
    return times;
  };
  // Product, sum, concatenation and conversion: 4, 2 + 4 + 4, 4 + 4, 4 + 2 bytes an output.
  EXPECT_NEAR(added_s(true, false).forward_s * 1e9, 28 * outputs, 1e-3);
  // To f32, and of it the outputs' gradients, biases' and weights': 6, 6, 12 and 12, and the
  // outputs' together again 4; of the first biases two halves are read.
  EXPECT_NEAR(added_s(true, false).backward_input_s * 1e9, 40 * outputs + 2 * 2 * inner, 1e-3);
  // Two halves are read and written twice; their gradients by what was clamped, then together.
  EXPECT_NEAR(added_s(false, true).forward_s * 1e9, 2 * 4 * 2 * inner, 1e-3);
  EXPECT_NEAR(added_s(false, true).backward_input_s * 1e9, 2 * 5 * 2 * inner, 1e-3);
  EXPECT_EQ(added_s(true, true).backward_weight_s, 0);
  EXPECT_EQ(experts_issued(4, false, true, true, false), experts_issued(4, false, true) + 4 + 2);
  EXPECT_EQ(experts_issued(4, false, true, false, true), experts_issued(4, false, true) + 3);
}

TEST(ExpertTime, RowsThatLieBySenderAreSortedAndBack) {
  ExpertWork shape = gated();
  const OperatorTimes plain = expert_times(shape, 1e30, plain_chip());
  shape.sorted = true;
  const OperatorTimes sorted = expert_times(shape, 1e30, plain_chip());
  // Read and written, 64 wide in bf16, 128 rows, twice in each pass.
  const double moved = 2.0 * 2 * 2 * 128 * 64;
  EXPECT_NEAR((sorted.forward_s - plain.forward_s) * 1e9, moved, 1e-3);
  EXPECT_NEAR((sorted.backward_input_s - plain.backward_input_s) * 1e9, moved, 1e-3);
  EXPECT_EQ(sorted.backward_weight_s, plain.backward_weight_s);
  EXPECT_EQ(experts_issued(4, false, true, false, false, true), experts_issued(4, false, true) + 2);
}

TEST(ExpertTime, RowsOfOneSenderOrExpertNeedNoSorting) {
  MoeExperts op;
  op.experts = 8;
  Execution how;
  how.ep = 4;
  EXPECT_FALSE(is_sorted(op, how));
  op.padded = true;
  EXPECT_TRUE(is_sorted(op, how));
  how.ep = 8;
  EXPECT_FALSE(is_sorted(op, how));
  how.ep = 1;
  EXPECT_FALSE(is_sorted(op, how));
  // Tensor-parallel ranks gather what each was sent.
  how.tp = 2;
  how.sequence_parallel = true;
  EXPECT_TRUE(is_sorted(op, how));
  how.whole_experts = true;
  EXPECT_FALSE(is_sorted(op, how));
}

TEST(ExpertTime, ReadsNoMoreExpertsThanAreVisited) {
  ExpertWork shape = gated();
  shape.tokens = shape.visits = 2;
  const OperatorTimes few = expert_times(shape, 1e30, plain_chip());
  shape.experts = 2;
  const OperatorTimes both = expert_times(shape, 1e30, plain_chip());
  EXPECT_DOUBLE_EQ(few.forward_s, both.forward_s);
}

TEST(ExpertTime, IsNeverLongerWithMoreBandwidthOrAHigherPeak) {
  for (const double visits : {1.0, 100.0, 4096.0}) {
    for (const bool is_narrow : {false, true}) {
      ExpertWork shape = gated();
      shape.visits = visits;
      shape.is_narrow = is_narrow;
      Chip chip = plain_chip();
      const OperatorTimes before = expert_times(shape, 1e12, chip);
      const OperatorTimes peak = expert_times(shape, 2e12, chip);
      chip.memory.bytes_per_s *= 2;
      const OperatorTimes memory = expert_times(shape, 1e12, chip);
      for (const OperatorTimes& after : {peak, memory}) {
        EXPECT_LE(after.forward_s, before.forward_s);
        EXPECT_LE(after.backward_input_s, before.backward_input_s);
        EXPECT_LE(after.backward_weight_s, before.backward_weight_s);
      }
    }
  }
}

TEST(ExpertTime, HostIssuesEachExpertsProducts) {
  const Graph graph = load_model("mixtral-8x7b", {.seq_len = 128, .dims = {}});
  System system = load_system("dgx-h100:8");
  system.groups.front().chip.efficiency.host_operator_s = 1e-2;
  const auto forward_s = [&](int ep, const char* precision) {
    Execution how;
    how.ep = ep;
    LayerGroups groups;
    groups.tp = groups.cp = span_of(system, 1, 1);
    groups.ep = span_of(system, 1, ep);
    return estimate_layer(graph, 1, how, parse_precision(precision), groups, system)
        .forward.total_s();
  };
  // Two products of each of eight experts; of two with their transfers when spread over four; and
  // conversions of as many operands.
  EXPECT_NEAR(forward_s(1, "bf16") - forward_s(4, "bf16"), (2 * 8 - 2 * 2 - 2) * 1e-2, 1e-9);
  EXPECT_NEAR(forward_s(1, "fp8") - forward_s(1, "bf16"), 2 * 8 * 1e-2, 1e-9);
}

/// Mixtral's first block, tensor-parallel ranks dividing its experts or not.
LayerCost block_cost(const System& system, int tp, int ep, bool whole_experts) {
  const Graph graph = load_model("mixtral-8x7b", {.seq_len = 4096, .dims = {}});
  Execution how;
  how.tp = tp;
  how.ep = ep;
  how.whole_experts = whole_experts;
  how.sequence_parallel = tp > 1;
  LayerGroups groups;
  groups.tp = span_of(system, 1, tp);
  groups.cp = span_of(system, tp, 1);
  groups.ep = span_of(system, whole_experts ? 1 : tp, ep);
  return estimate_layer(graph, 1, how, {}, groups, system);
}

TEST(ExpertTime, WholeExpertsAreSpreadOverTensorParallelRanksToo) {
  const System system = load_system("dgx-h100:8");
  const LayerCost sharded = block_cost(system, 2, 4, false);
  const LayerCost whole = block_cost(system, 2, 8, true);
  EXPECT_DOUBLE_EQ(whole.expert_parameters, sharded.expert_parameters);
  EXPECT_DOUBLE_EQ(whole.dense_parameters, sharded.dense_parameters);
  EXPECT_DOUBLE_EQ(whole.model_flops, sharded.model_flops);
  // Of sharded experts both ranks keep the tokens that came, two visits of 4096 tokens 4096 wide.
  EXPECT_NEAR(sharded.stash_bytes - whole.stash_bytes, 0.5 * 2 * 2 * 4096 * 4096,
              1e-6 * sharded.stash_bytes);
  // Nothing of theirs is summed over tensor-parallel ranks; what attention sums stays.
  EXPECT_LT(whole.forward.tp_comm_s, sharded.forward.tp_comm_s);
  EXPECT_GT(whole.forward.tp_comm_s, 0);
  // As many whole experts as halves have half the rows each and twice the width: products are no
  // narrower, and what moves between them is as much.
  EXPECT_LT(whole.forward.compute_s, sharded.forward.compute_s);
  // Experts of one rank each, with twice the weights: as much memory as a rank of tp 1 has of them.
  EXPECT_DOUBLE_EQ(block_cost(system, 2, 4, true).expert_parameters,
                   block_cost(system, 1, 4, false).expert_parameters);
  // With one tensor-parallel rank it is the same thing.
  EXPECT_EQ(block_cost(system, 1, 4, true), block_cost(system, 1, 4, false));
}

TEST(ExpertTime, WholeExpertsNeedSequenceParallelism) {
  const SplitLimits limits = split_limits(load_model("mixtral-8x7b", {.seq_len = 128, .dims = {}}));
  Execution how;
  how.tp = 2;
  how.ep = 8;
  how.whole_experts = true;
  EXPECT_EQ(refusal(limits, how), "experts that tp does not divide need sequence parallelism");
  how.sequence_parallel = true;
  EXPECT_EQ(refusal(limits, how), "");
}

}  // namespace
}  // namespace braid
