#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/infinity.h"
#include "braid/chip/chip_share.h"
#include "braid/chip/graph_kernels.h"
#include "braid/chip/kernel_mapper.h"
#include "braid/dataflow/workload_graphs.h"

#include "chip/mapping_oracle.h"

namespace braid {
namespace {

using ::testing::UnorderedElementsAreArray;

constexpr Elementwise::Keeps kInputs = Elementwise::Keeps::inputs;

/// A graph of one layer under construction; numbers have two bytes.
class SmallModel {
 public:
  TensorId tensor(const std::string& name, std::vector<std::int64_t> dims, bool parameter = false) {
    graph_.tensors.push_back({name, std::move(dims), Dtype::bf16, parameter, -1});
    return static_cast<TensorId>(graph_.tensors.size() - 1);
  }
  TensorId add(const std::string& name, OperatorKind kind, std::vector<TensorId> inputs,
               std::vector<std::int64_t> dims) {
    const TensorId output = tensor(name + ".out", std::move(dims));
    const auto id = static_cast<OperatorId>(graph_.operators.size());
    graph_.tensors[static_cast<std::size_t>(output)].producer = id;
    graph_.operators.push_back({name, std::move(kind), std::move(inputs), {output}});
    return output;
  }
  TensorId linear(const std::string& name, TensorId x, std::int64_t rows, std::int64_t k,
                  std::int64_t n) {
    return add(name, MatMul{1, rows, n, k, true, false}, {x, tensor(name + ".w", {k, n}, true)},
               {rows, n});
  }
  TensorId norm(const std::string& name, TensorId x, std::int64_t rows, std::int64_t width) {
    return add(name, Normalization{rows * width, width, true},
               {x, tensor(name + ".w", {width}, true)}, {rows, width});
  }
  TensorId sum(const std::string& name, TensorId a, TensorId b, std::int64_t rows,
               std::int64_t width) {
    return add(name, Elementwise{rows * width, 1, Elementwise::Keeps::nothing}, {a, b},
               {rows, width});
  }

  KernelGraph kernels(GraphPasses passes, TensorId output) {
    graph_.outputs = {output};
    graph_.layers = {{"all", 0, static_cast<OperatorId>(graph_.operators.size()), 0}};
    return kernels_of(graph_, 0, 1, 2, passes);
  }

 private:
  Graph graph_;
};

/// The layer of DFModel's transformers, operator by operator.
KernelGraph gpt_layer(const TransformerShape& shape, bool flash) {
  SmallModel model;
  const std::int64_t h = shape.hidden, s = shape.seq_len, f = shape.feed_forward;
  const std::int64_t head = h / shape.heads;
  const TensorId x =
      model.norm("before", model.tensor("x", {s, h}), s, h);  // What the layer before it gives.
  const TensorId norm_1 = model.norm("norm_1", x, s, h);
  const TensorId q = model.linear("query", norm_1, s, h, h);
  const TensorId k = model.linear("key", norm_1, s, h, h);
  const TensorId v = model.linear("value", norm_1, s, h, h);
  const TensorId heads = model.add(
      "core", Attention{1, shape.heads, shape.heads, s, s, head, head, 0, true, flash, false},
      {q, k, v}, {s, h});
  const TensorId add_1 = model.sum("add_1", x, model.linear("project", heads, s, h, h), s, h);
  const TensorId up = model.linear("up", model.norm("norm_2", add_1, s, h), s, h, f);
  const TensorId gelu = model.add("gelu", Elementwise{s * f, 8, kInputs}, {up}, {s, f});
  const TensorId y = model.sum("add_2", add_1, model.linear("down", gelu, s, f, h), s, h);
  return model.kernels(GraphPasses::gradients, y);
}

std::vector<double> products(const KernelGraph& graph, bool backward) {
  std::vector<double> flops;
  for (const Kernel& kernel : graph.kernels) {
    if (kernel.matrix && kernel.backward == backward) flops.push_back(kernel_flops(kernel));
  }
  return flops;
}
double gemm_flops(const KernelGraph& graph, bool backward) {
  double sum = 0;
  for (const double flops : products(graph, backward)) sum += flops;
  return sum;
}

const Kernel& kernel_at(const KernelGraph& graph, std::int32_t number) {
  return graph.kernels[static_cast<std::size_t>(number)];
}
const Kernel& named(const KernelGraph& graph, const std::string& name) {
  const auto found = std::find_if(graph.kernels.begin(), graph.kernels.end(),
                                  [&](const Kernel& kernel) { return kernel.name == name; });
  EXPECT_NE(found, graph.kernels.end()) << name;
  return found == graph.kernels.end() ? graph.kernels.front() : *found;
}

/// Forward kernels and the backward products that read what they made.
std::set<std::pair<std::string, std::string>> kept_operands(const KernelGraph& graph) {
  std::set<std::pair<std::string, std::string>> pairs;
  for (const KernelTensor& tensor : graph.tensors) {
    const Kernel& from = kernel_at(graph, tensor.from);
    const Kernel& to = kernel_at(graph, tensor.to);
    if (!from.backward && to.backward && to.matrix) pairs.emplace(from.name, to.name);
  }
  return pairs;
}

std::vector<std::string> writers_of(const KernelGraph& graph, const std::string& reader) {
  std::vector<std::string> names;
  for (const KernelTensor& tensor : graph.tensors) {
    if (kernel_at(graph, tensor.to).name == reader) {
      names.push_back(kernel_at(graph, tensor.from).name);
    }
  }
  return names;
}

ChipWork on_one_chip(const KernelGraph& graph) { return whole_work(graph, 1); }

TEST(TrainingKernels, AgreeWithThePublishedTransformerLayer) {
  const TransformerShape shape{512, 8, 2048, 256, true, 2};
  const KernelGraph published = transformer_layer(shape), mine = gpt_layer(shape, false);
  for (const bool backward : {false, true}) {
    EXPECT_THAT(products(mine, backward), UnorderedElementsAreArray(products(published, backward)));
  }
  // The same tensors are kept for products.
  const std::map<std::string, std::string> names = {
      {"attend", "core.values"},
      {"dropout_1", "core.softmax"},
      {"attend_weights_gradient", "core.weights_gradient"},
      {"attend_values_gradient", "core.values_gradient"},
      {"scores_queries_gradient", "core.queries_gradient"},
      {"scores_keys_gradient", "core.keys_gradient"}};
  const auto renamed = [&](std::string name) {
    if (const auto found = names.find(name); found != names.end()) return found->second;
    const std::size_t at = name.find("_parameters");
    return at == std::string::npos ? name : name.substr(0, at) + ".weight_gradient";
  };
  std::set<std::pair<std::string, std::string>> expected;
  for (const auto& [from, to] : kept_operands(published)) {
    expected.emplace(renamed(from), renamed(to));
  }
  EXPECT_EQ(expected.size(), 10U);
  EXPECT_EQ(kept_operands(mine), expected);
}

TEST(TrainingKernels, ComputeEachProductTwiceMore) {
  const TransformerShape shape{64, 4, 256, 32, true, 2};
  const KernelGraph kept = gpt_layer(shape, false), again = gpt_layer(shape, true);
  EXPECT_DOUBLE_EQ(gemm_flops(kept, true), 2 * gemm_flops(kept, false));
  EXPECT_DOUBLE_EQ(gemm_flops(again, true),
                   2 * gemm_flops(again, false) + kernel_flops(named(again, "core.scores")));

  SmallModel model;
  const std::int64_t rows = 16;
  TensorId x = model.norm("norm", model.tensor("x", {rows, 8}), rows, 8);
  x = model.add("cell", Recurrent{4, 4, 32, 8}, {x, model.tensor("cell.w", {8, 32}, true)},
                {rows, 32});
  const TensorId scores = model.add("router", MoeRouter{rows, 32, 4, 2},
                                    {x, model.tensor("router.w", {32, 4}, true)}, {rows, 4});
  x = model.add("experts", MoeExperts{rows, 32, 64, 4, 2, 3},
                {x, scores, model.tensor("experts.w", {4, 3, 32, 64}, true)}, {rows, 32});
  // Images of 2 samples, 8 positions, 32 channels; two groups; half as many positions.
  x = model.add("conv", Convolution{2, 32, 64, 2, 4, 8, 3, false, false},
                {x, model.tensor("conv.w", {64, 16, 3}, true)}, {2, 64, 4});
  x = model.add("deconv", Convolution{2, 64, 32, 1, 8, 4, 2, true, false},
                {x, model.tensor("deconv.w", {64, 32, 2}, true)}, {2, 32, 8});
  const TensorId square = model.add("square", MatMul{2, 8, 8, 32, false, false}, {x, x}, {2, 8, 8});
  const KernelGraph mixed = model.kernels(GraphPasses::gradients, square);
  for (const char* name : {"cell", "router", "conv", "deconv"}) {
    const double forward = kernel_flops(named(mixed, name));
    for (const char* gradient : {".input_gradient", ".weight_gradient"}) {
      // The gradient of a convolution's input has whole multiplications for each position.
      const double backward = kernel_flops(named(mixed, std::string(name) + gradient));
      EXPECT_GE(backward, forward) << name << gradient;
      EXPECT_LE(backward, forward * 1.01) << name << gradient;
    }
  }
  EXPECT_DOUBLE_EQ(kernel_flops(named(mixed, "deconv")), 2.0 * 2 * 4 * 2 * 64 * 32);
  for (const char* part : {".up", ".down"}) {
    const std::string name = std::string("experts") + part;
    for (const char* gradient : {".input_gradient", ".weight_gradient"}) {
      EXPECT_DOUBLE_EQ(kernel_flops(named(mixed, name + gradient)),
                       kernel_flops(named(mixed, name)));
    }
  }
  for (const char* gradient : {"square.first_gradient", "square.second_gradient"}) {
    EXPECT_DOUBLE_EQ(kernel_flops(named(mixed, gradient)), kernel_flops(named(mixed, "square")));
  }
  EXPECT_THAT(writers_of(mixed, "deconv.out.gradient_sum"),
              UnorderedElementsAreArray({"square.first_gradient", "square.second_gradient"}));
}

/// x -> norm -> up -> act -> down -> + norm's output -> y
KernelGraph small_network(GraphPasses passes, std::int64_t rows) {
  SmallModel model;
  const TensorId x = model.norm("norm", model.tensor("x", {rows, 8}), rows, 8);
  const TensorId up = model.linear("up", x, rows, 8, 32);
  const TensorId act = model.add("act", Elementwise{rows * 32, 4, kInputs}, {up}, {rows, 32});
  const TensorId y = model.sum("add", x, model.linear("down", act, rows, 32, 8), rows, 8);
  return model.kernels(passes, y);
}

TEST(TrainingKernels, FollowGradientsBackThroughTensors) {
  const KernelGraph graph = small_network(GraphPasses::gradients, 16);
  constexpr double kRows = 16 * 8 * 2, kParameters = 8 * 32 * 2;
  const auto reads = [&](const char* reader, std::vector<std::string> writers) {
    EXPECT_THAT(writers_of(graph, reader), UnorderedElementsAreArray(writers)) << reader;
  };
  // The sum hands on the gradient that comes from outside.
  reads("down.input_gradient", {});
  EXPECT_DOUBLE_EQ(named(graph, "down.input_gradient").dram_bytes, kRows);
  reads("down.weight_gradient", {"act"});
  EXPECT_DOUBLE_EQ(named(graph, "down.weight_gradient").gradient_bytes, kParameters);
  reads("act.input_gradient", {"down.input_gradient", "up"});
  reads("up.input_gradient", {"act.input_gradient"});
  reads("up.weight_gradient", {"act.input_gradient", "norm"});
  reads("norm.out.gradient_sum", {"up.input_gradient"});
  EXPECT_DOUBLE_EQ(named(graph, "norm.out.gradient_sum").dram_bytes, kRows);
  reads("norm.weight_gradient", {"norm.out.gradient_sum"});
  EXPECT_EQ(graph.kernels.size(), 12U);

  const KernelGraph forward = small_network(GraphPasses::forward, 16);
  ASSERT_EQ(forward.kernels.size(), 5U);
  EXPECT_TRUE(std::equal(forward.kernels.begin(), forward.kernels.end(), graph.kernels.begin()));
}

TEST(TrainingKernels, PartsOfATensorHaveGradientsSideBySide) {
  SmallModel model;
  const TensorId x = model.norm("norm", model.tensor("x", {16, 64}), 16, 64);
  // Four query heads share two of keys and values.
  const TensorId qkv = model.linear("qkv", x, 16, 64, 128);
  const TensorId y =
      model.add("core", Attention{1, 4, 2, 16, 16, 16, 16, 0, true, false, false}, {qkv}, {16, 64});
  const KernelGraph graph = model.kernels(GraphPasses::gradients, y);
  const std::vector<std::string> parts = {"core.queries_gradient", "core.keys_gradient",
                                          "core.values_gradient"};
  EXPECT_THAT(writers_of(graph, "qkv.input_gradient"), UnorderedElementsAreArray(parts));
  double elements = 0;
  for (const std::string& part : parts) elements += output_elements(named(graph, part));
  EXPECT_DOUBLE_EQ(elements, 16 * 128);
  EXPECT_DOUBLE_EQ(gemm_flops(graph, true), 2 * gemm_flops(graph, false));
  EXPECT_THAT(writers_of(graph, "core.values"), UnorderedElementsAreArray({"core.softmax", "qkv"}));
}

TEST(TrainingKernels, StepsWaitForGradientsAndMoveTheirState) {
  const KernelGraph graph = small_network(GraphPasses::step, 16);
  EXPECT_EQ(writers_of(graph, "up.step"), std::vector<std::string>{"up.weight_gradient"});
  EXPECT_DOUBLE_EQ(named(graph, "up.step").dram_bytes, 8 * 32 * (3 * 2 + 24));
  EXPECT_DOUBLE_EQ(output_elements(named(graph, "up.step")), 8 * 32);
  const ChipWork work = on_one_chip(graph);
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    const bool gradient = kernel_at(graph, graph.tensors[i].from).writes_out;
    EXPECT_EQ(work.tensors[i].bytes == 0, gradient);
  }
}

TEST(TrainingKernels, ParametersUsedTwiceAddUpTheirGradients) {
  SmallModel model;
  const TensorId table = model.tensor("table", {64, 8}, true);
  const TensorId x =
      model.add("embed", Embedding{64, 8, 16, 1}, {model.tensor("ids", {16}), table}, {16, 8});
  const TensorId y = model.add("head", MatMul{1, 16, 64, 8, true, false}, {x, table}, {16, 64});
  const KernelGraph graph = model.kernels(GraphPasses::step, y);
  // Rows written, and the gradient so far read.
  EXPECT_DOUBLE_EQ(named(graph, "embed.weight_gradient").dram_bytes, 16 * 8 * 2 + 64 * 8 * 2);
  EXPECT_DOUBLE_EQ(named(graph, "head.weight_gradient").gradient_bytes, 64 * 8 * 2);
  EXPECT_THAT(writers_of(graph, "head.step"),
              UnorderedElementsAreArray({"embed.weight_gradient", "head.weight_gradient"}));
}

// Scores that are made again wait for nothing, but need not lie on chip until they are read.
TEST(TrainingKernels, ScoresAreMadeAgainAsLateAsCanBe) {
  const KernelGraph graph = gpt_layer({64, 4, 256, 32, true, 2}, true);
  const ChipWork work = on_one_chip(graph);
  std::map<std::string, double> buffers;
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    if (kernel_at(graph, graph.tensors[i].from).name != "core.softmax_again") continue;
    buffers[kernel_at(graph, graph.tensors[i].to).name] = work.tensors[i].buffers;
  }
  EXPECT_EQ(buffers, (std::map<std::string, double>{{"core.values_gradient", 2},
                                                    {"core.softmax_gradient", 3}}));
}

TEST(TrainingKernels, WhatIsKeptWaitsInDram) {
  const ChipWork work = on_one_chip(small_network(GraphPasses::gradients, 16));
  DataflowChip chip{64, 4, 4, 1e9, 1e9, 1e9, 1e9, 0, 0};
  Mapping mapping;
  for (const ChipKernel& kernel : work.kernels) {
    mapping.partition_of.push_back(kernel.backward ? 1 : 0);
  }
  const MappingCost cost = evaluate_mapping(work, chip, mapping, {});
  ASSERT_FALSE(cost.violation);
  constexpr double kRows = 16 * 8 * 2, kWide = 16 * 32 * 2, kParameters = 8 * 32 * 2;
  constexpr double kKept = kRows + 2 * kWide;  // The norm's, up's and the activation's outputs.
  EXPECT_DOUBLE_EQ(cost.partitions[0].dram_traffic_bytes, 2 * kRows + 2 * kParameters + kKept);
  // Back: three reads of the gradient from outside, of parameters and of the norm's input.
  EXPECT_DOUBLE_EQ(cost.partitions[1].dram_traffic_bytes,
                   kKept + 3 * kRows + 2 * kParameters + 2 * kParameters + 8 * 2 + kRows);
  for (const PartitionCost& partition : cost.partitions) {
    EXPECT_DOUBLE_EQ(partition.dram_bytes, kKept);
  }
}

TEST(TrainingKernels, MappingsAgreeWithTryingEverything) {
  const ChipWork work = on_one_chip(small_network(GraphPasses::gradients, 16));
  std::set<std::size_t> partitions;
  for (const double sram : {700.0, 1500.0, 4000.0}) {
    const DataflowChip chip{16, 4, 4, 1e9, sram, 1e6, 2e11, 0, 0};
    MappingRules rules;
    rules.whole_tiles = false;
    rules.overlap = sram == 1500 ? PartitionOverlap::none : PartitionOverlap::all;
    const MappingOutcome outcome = map_kernels(work, chip, rules);
    ASSERT_EQ(outcome.status, MappingStatus::optimal);
    const double best = MappingOracle(work, chip, rules).best();
    EXPECT_NEAR(outcome.cost.time_s, best, 1e-9 * best);
    partitions.insert(outcome.cost.partitions.size());
  }
  EXPECT_GT(partitions.size(), 1U);
}

TEST(TrainingKernels, MoreOfAChipNeverHurts) {
  const ChipWork work = on_one_chip(small_network(GraphPasses::step, 64));
  const DataflowChip least{64, 4, 4, 1e9, 700, 1e6, 2e10, 0, 0};
  const auto time_on = [&](const DataflowChip& chip) {
    const MappingOutcome outcome = map_kernels(work, chip, {});
    EXPECT_EQ(outcome.status, MappingStatus::optimal);
    return outcome.cost.time_s;
  };
  double before = kInfinity;
  for (const double times : {1.0, 1.5, 2.0, 4.0, 16.0}) {
    DataflowChip memory = least, bandwidth = least, both = least;
    memory.sram_bytes *= times;
    bandwidth.dram_bytes_per_s *= times;
    both.sram_bytes *= times;
    both.dram_bytes_per_s *= times;
    const double best = time_on(both);
    EXPECT_LE(best, before * (1 + 1e-9));
    EXPECT_LE(best, time_on(memory) * (1 + 1e-9));
    EXPECT_LE(best, time_on(bandwidth) * (1 + 1e-9));
    before = best;
  }
}

TEST(TrainingKernels, OnlyLookedUpTablesLieInNoKernel) {
  Graph graph;
  graph.tensors = {
      {"ids", {16}, Dtype::bf16, false, -1},    {"table", {64, 8}, Dtype::bf16, true, -1},
      {"tied", {32, 8}, Dtype::bf16, true, -1}, {"a", {16, 8}, Dtype::bf16, false, 0},
      {"b", {16, 8}, Dtype::bf16, false, 1},    {"y", {16, 32}, Dtype::bf16, false, 2}};
  graph.operators = {{"look", Embedding{64, 8, 16, 1}, {0, 1}, {3}},
                     {"tied", Embedding{32, 8, 16, 1}, {0, 2}, {4}},
                     {"head", MatMul{1, 16, 32, 8, true, false}, {4, 2}, {5}}};
  graph.layers = {{"all", 0, 3, 0}};
  EXPECT_DOUBLE_EQ(table_elements(graph, 0, 1), 64 * 8);
}

}  // namespace
}  // namespace braid
