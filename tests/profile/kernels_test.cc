#include <algorithm>

#include <gtest/gtest.h>

#include "braid/frontend/model.h"
#include "braid/graph/op_work.h"
#include "braid/profile/estimator.h"

namespace braid {
namespace {

LayerCost cost_of(const Graph& graph, LayerId layer, int micro_batch, int tp,
                  const Precision& precision, const System& system) {
  Execution how;
  how.micro_batch = micro_batch;
  how.tp = tp;
  LayerGroups groups;
  groups.tp = span_of(system, 1, tp);
  groups.cp = span_of(system, tp, 1);
  groups.ep = span_of(system, tp, 1);
  return estimate_layer(graph, layer, how, precision, groups, system);
}

double backward_s(const LayerCost& cost) {
  return cost.backward_input.total_s() + cost.backward_weight.total_s();
}

TEST(Kernels, WaitForAHostThatIsSlower) {
  const Graph graph = load_model("gpt2", {.seq_len = 128, .dims = {}});
  System system = load_system("dgx-a100:8");
  double& host_s = system.groups.front().chip.efficiency.host_operator_s;
  host_s = 0;
  const LayerCost device = cost_of(graph, 1, 1, 1, {}, system);
  const Layer& block = graph.layers[1];
  const double operators = block.last - block.first;
  host_s = 1e-3;
  const LayerCost bound = cost_of(graph, 1, 1, 1, {}, system);
  // Every operator of a GPT-2 block is issued: none is a view.
  EXPECT_NEAR(bound.forward.total_s(), operators * host_s, 1e-12);
  EXPECT_NEAR(backward_s(bound), operators * host_s, 1e-12);
  // With tensor parallelism also the two collectives.
  EXPECT_NEAR(cost_of(graph, 1, 1, 2, {}, system).forward.total_s(), (operators + 2) * host_s,
              1e-12);
  host_s = 1e-9;
  const LayerCost free = cost_of(graph, 1, 1, 1, {}, system);
  EXPECT_DOUBLE_EQ(free.forward.total_s(), device.forward.total_s());
  EXPECT_DOUBLE_EQ(backward_s(free), backward_s(device));
}

TEST(Kernels, FourOfAttentionThatKeepsItsScoresAreIssued) {
  Graph graph = load_model("gpt2", {.seq_len = 128, .dims = {}});
  System system = load_system("dgx-a100:8");
  const double host_s = system.groups.front().chip.efficiency.host_operator_s = 1e-3;
  const LayerCost flash = cost_of(graph, 1, 1, 1, {}, system);
  for (Operator& op : graph.operators) {
    if (auto* attention = std::get_if<Attention>(&op.kind)) attention->flash = false;
  }
  const LayerCost plain = cost_of(graph, 1, 1, 1, {}, system);
  EXPECT_NEAR(plain.forward.total_s(), flash.forward.total_s() + 3 * host_s, 1e-12);
  EXPECT_NEAR(backward_s(plain), backward_s(flash) + 3 * host_s, 1e-12);
}

TEST(Kernels, AttentionThatKeepsItsScoresMovesThem) {
  Graph graph = load_model("gpt3-1.3b", {.seq_len = 2048, .dims = {}});
  const System system = load_system("dgx-a100:8");
  const double fused_s = cost_of(graph, 1, 1, 1, {}, system).forward.total_s();
  double scores = 0;
  for (Operator& op : graph.operators) {
    if (auto* attention = std::get_if<Attention>(&op.kind)) {
      attention->flash = false;
      attention->dropout = false;
      scores = static_cast<double>(attention->heads) * 2048 * 2048;
    }
  }
  const double plain_s = cost_of(graph, 1, 1, 1, {}, system).forward.total_s();
  // At least scores and probabilities written and read once each, but for what the fused kernel
  // took.
  const Chip& chip = system.groups.front().chip;
  const double moved_s = 4 * scores * 2 / chip.memory.bytes_per_s;
  EXPECT_GT(plain_s, fused_s);
  EXPECT_GT(plain_s, moved_s);
}

TEST(Kernels, ProductsOfKeptScoresComputeWhileTheyMoveThem) {
  Graph graph = load_model("gpt3-1.3b", {.seq_len = 2048, .dims = {}});
  for (Operator& op : graph.operators) {
    if (auto* attention = std::get_if<Attention>(&op.kind)) attention->flash = false;
  }
  const System system = load_system("dgx-a100:8");
  const auto forward_s = [&](double faster_gemms, double faster_memory) {
    System other = system;
    Chip& chip = other.groups.front().chip;
    chip.efficiency.kernel_launch_s = chip.efficiency.host_operator_s = 0;
    chip.efficiency.matmul_peak_fraction *= faster_gemms;
    chip.memory.bytes_per_s *= faster_memory;
    chip.vector_flops_per_s *= 1e6;
    return cost_of(graph, 1, 1, 1, {}, other).forward.total_s();
  };
  const double both_s = forward_s(1, 1);
  const double compute_s = forward_s(1, 1e6);
  const double memory_s = forward_s(1e6, 1);
  EXPECT_GT(both_s, std::max(compute_s, memory_s));
  // What is hidden is at least the lesser of the two in each product of attention.
  EXPECT_LT(both_s, compute_s + memory_s);
}

TEST(Kernels, NarrowFormatsSpeedUpTheBlocksProductsOnly) {
  const Graph graph = load_model("llama-3-8b", {.seq_len = 8192, .dims = {}});
  const System system = load_system("dgx-h100:8");
  const Precision wide = parse_precision("bf16");
  const Precision narrow = parse_precision("fp8");
  const auto forward_s = [&](LayerId layer, const Precision& precision) {
    return cost_of(graph, layer, 1, 1, precision, system).forward.total_s();
  };
  const auto head = static_cast<LayerId>(graph.layers.size() - 1);
  EXPECT_DOUBLE_EQ(forward_s(head, narrow), forward_s(head, wide));
  // Less than twice as fast: attention, pointwise work and conversions remain.
  EXPECT_LT(forward_s(1, narrow), forward_s(1, wide));
  EXPECT_GT(forward_s(1, narrow), forward_s(1, wide) / 2);
}

TEST(Kernels, ProductsOfNarrowFormatsHaveAShareOfTheirOwn) {
  const Graph graph = load_model("llama-3-8b", {.seq_len = 8192, .dims = {}});
  System system = load_system("dgx-h100:8");
  Efficiency& reached = system.groups.front().chip.efficiency;
  reached.host_operator_s = 0;
  const auto forward_s = [&](const char* precision, double share) {
    reached.narrow_matmul_peak_fraction = share;
    return cost_of(graph, 1, 1, 1, parse_precision(precision), system).forward.total_s();
  };
  const double as_wide = reached.matmul_peak_fraction;
  EXPECT_DOUBLE_EQ(forward_s("bf16", as_wide / 2), forward_s("bf16", 0));
  EXPECT_DOUBLE_EQ(forward_s("fp8", as_wide), forward_s("fp8", 0));
  // At half the share the products in 8 bits take as long as those in 16.
  EXPECT_GT(forward_s("fp8", as_wide / 2), 1.3 * forward_s("fp8", 0));
  EXPECT_GT(forward_s("fp8", as_wide / 2), forward_s("bf16", 0));
}

}  // namespace
}  // namespace braid
