#include "braid/chip/graph_kernels.h"

#include <gtest/gtest.h>

#include "braid/base/error.h"

namespace braid {
namespace {

/// x -> up (product) -> act -> view -> down (product) -> y, with attention of x beside it.
Graph small_graph() {
  Graph graph;
  graph.name = "small";
  const auto tensor = [&graph](const char* name, std::vector<std::int64_t> dims, bool parameter) {
    graph.tensors.push_back({name, std::move(dims), Dtype::bf16, parameter, -1});
    return static_cast<TensorId>(graph.tensors.size() - 1);
  };
  const TensorId x = tensor("x", {8, 16}, false), w = tensor("w", {16, 64}, true);
  const TensorId up = tensor("up", {8, 64}, false), act = tensor("act", {8, 64}, false);
  const TensorId view = tensor("view", {8, 64}, false), v = tensor("v", {64, 16}, true);
  const TensorId y = tensor("y", {8, 16}, false), scores = tensor("attended", {8, 16}, false);
  const auto op = [&graph](const char* name, OperatorKind kind, std::vector<TensorId> inputs,
                           TensorId output) {
    graph.operators.push_back(
        {name, std::move(kind), std::move(inputs), {output}, Split::replicated, 0, Pass::forward});
    graph.tensors[static_cast<std::size_t>(output)].producer =
        static_cast<OperatorId>(graph.operators.size() - 1);
  };
  op("up", MatMul{1, 8, 64, 16, true, false}, {x, w}, up);
  op("act", Elementwise{8 * 64, 1, Elementwise::Keeps::inputs}, {up}, act);
  op("reshape", DataMovement{true}, {act}, view);
  op("down", MatMul{1, 8, 16, 64, true, false}, {view, v}, y);
  op("attend", Attention{1, 2, 2, 8, 8, 8, 8, 0, false, true, false}, {x, x, y}, scores);
  graph.layers.push_back({"all", 0, 5, 0});
  graph.inputs = {x};
  graph.outputs = {scores};
  return graph;
}

TEST(GraphKernels, FollowOperatorsAndTensors) {
  const KernelGraph kernels = kernels_of(small_graph(), 0, 1, 2);
  ASSERT_EQ(kernels.kernels.size(), 6U);
  const Kernel& up = kernels.kernels[0];
  EXPECT_EQ(up.m, 64);
  EXPECT_EQ(up.k, 16);
  EXPECT_EQ(up.n, 8);
  EXPECT_TRUE(up.weights && up.matrix);
  EXPECT_DOUBLE_EQ(up.dram_bytes, 8 * 16 * 2);
  EXPECT_FALSE(kernels.kernels[1].matrix);
  EXPECT_DOUBLE_EQ(output_elements(kernels.kernels[1]), 8 * 64);
  EXPECT_EQ(kernels.kernels[2].name, "down");
  EXPECT_EQ(kernels.kernels[3].name, "attend.scores");
  EXPECT_EQ(kernels.kernels[3].outer, 2);
  EXPECT_DOUBLE_EQ(kernels.kernels[3].dram_bytes, 2 * 8 * 16 * 2);  // Q and K
  EXPECT_DOUBLE_EQ(kernels.kernels[5].dram_bytes, 8 * 16 * 2);      // the graph's output
  EXPECT_EQ(kernels.tensors, (std::vector<KernelTensor>{{0, 1}, {1, 2}, {3, 4}, {4, 5}, {2, 5}}));
}

TEST(GraphKernels, RefuseBackwardOperators) {
  Graph graph = small_graph();
  graph.operators[1].pass = Pass::input_gradient;
  EXPECT_THROW(kernels_of(graph, 0, 1, 2), Error);
}

TEST(GraphKernels, AChipKeepsItsPeak) {
  Chip chip;
  chip.name = "c";
  chip.peaks = {{Dtype::bf16, 1e15}};
  chip.compute_units = 132;
  chip.memory = {"HBM", 80e9, 3e12};
  EXPECT_THROW(dataflow_chip(chip, Dtype::bf16), Error);
  chip.on_chip = Memory{"L2", 50e6, 5e12};
  EXPECT_NEAR(peak_flops_per_s(dataflow_chip(chip, Dtype::bf16)), 1e15, 1);
  EXPECT_THROW(dataflow_chip(chip, Dtype::f32), Error);
}

}  // namespace
}  // namespace braid
