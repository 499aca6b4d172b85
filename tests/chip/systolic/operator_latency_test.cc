#include "braid/chip/systolic/operator_latency.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "braid/base/infinity.h"
#include "braid/base/parallel.h"
#include "braid/chip/systolic/vector_cycles.h"
#include "braid/graph/op_work.h"
#include "braid/graph/operator_fields.h"
#include "braid/graph/training.h"

#include "chip/systolic/every_kind_graph.h"
#include "chip/systolic/published_cores.h"

namespace braid {
namespace {

AcceleratorCores small_cores() {
  AcceleratorCores cores;
  cores.tensor.cores = 4;
  cores.tensor.array = {.rows = 8, .columns = 8, .words_per_cycle = 24};
  cores.tensor.buffers = {.l2_words = 512,
                          .l2_per_operand = true,
                          .global_words = 65536,
                          .global_words_per_cycle = 64,
                          .hbm_words_per_cycle = 32};
  cores.vector_cores = 2;
  cores.lanes = 8;
  return cores;
}

const Graph& step_graph() {
  static const Graph graph = training_graph(EveryKindGraph().graph());
  return graph;
}

const Operator& named(const Graph& graph, const std::string& name) {
  return *std::find_if(graph.operators.begin(), graph.operators.end(),
                       [&](const Operator& op) { return op.name == name; });
}

TEST(AcceleratorWork, NestsMultiplyWhatTheOperatorsDo) {
  const Graph& graph = step_graph();
  std::set<std::string_view> kinds;
  for (const Operator& op : graph.operators) {
    kinds.insert(kind_name(op.kind));
    const AcceleratorWork work = accelerator_work(graph, op, {.word_bytes = 2, .kept_words = 0});
    double macs = 0;
    for (const NestRuns& runs : work.nests) macs += runs.times * nest_macs(runs.nest);
    const OpWork expected = forward_work(graph, op);
    EXPECT_DOUBLE_EQ(2 * macs, expected.matmul_flops) << op.name;
    EXPECT_EQ(work.vector.operations, expected.vector_flops) << op.name;
  }
  EXPECT_EQ(kinds.size(), std::variant_size_v<OperatorKind>);
}

TEST(AcceleratorWork, NestsMoveTheTensorsOfPlainProducts) {
  const Graph& graph = step_graph();
  for (const char* name :
       {"product", "product.input_gradient", "linear", "linear.weight_gradient"}) {
    const Operator& op = named(graph, name);
    const AcceleratorWork work = accelerator_work(graph, op, {});
    const OpWork tensors = forward_work(graph, op);
    double words = 0;
    for (const NestRuns& runs : work.nests) words += runs.times * compulsory_hbm_words(runs.nest);
    const double bytes = tensors.input_bytes + tensors.weight_bytes + tensors.output_bytes;
    // The gradients of both operands read that of the output twice; a bias and its gradient are
    // beside the product.
    if (std::string_view(name) == "product.input_gradient") {
      EXPECT_EQ(2 * words, bytes + 2 * 4 * 12 * 20);
    } else {
      EXPECT_EQ(2 * (words + work.vector.words), bytes) << name;
      EXPECT_LE(work.vector.words, 64) << name;
    }
  }
}

TEST(AcceleratorWork, FlashKeepsScoresOnChip) {
  const Graph& graph = step_graph();
  const auto hbm_words = [&](const char* name) {
    double words = 0;
    const AcceleratorWork work = accelerator_work(graph, named(graph, name), {});
    for (const NestRuns& runs : work.nests) words += compulsory_hbm_words(runs.nest);
    return words;
  };
  const double scores = 3 * 4 * 16 * 16;
  EXPECT_EQ(hbm_words("plain") - hbm_words("flash"), 2 * scores);
  EXPECT_EQ(hbm_words("flash"), 2 * (48 * 32 + 48 * 16));
}

TEST(OperatorLatency, AllCoresAreNeverSlowerThanOne) {
  const Graph& graph = step_graph();
  NestMemo memo;
  for (const Operator& op : graph.operators) {
    const OperatorLatencies found = operator_latencies(graph, op, small_cores(), memo);
    EXPECT_LE(found.all.cycles, found.one.cycles) << op.name;
    EXPECT_LT(found.one.cycles, kInfinity) << op.name;
    EXPECT_LE(found.one.bound_cycles, found.one.cycles * (1 + 1e-12)) << op.name;
    EXPECT_LE(found.all.bound_cycles, found.all.cycles * (1 + 1e-12)) << op.name;
    EXPECT_EQ(found.use == CoreKind::none, found.one.cycles == 0) << op.name;
  }
  const auto use = [&](const char* name) {
    return operator_latencies(graph, named(graph, name), small_cores(), memo).use;
  };
  EXPECT_EQ(use("view"), CoreKind::none);
  EXPECT_EQ(use("transpose"), CoreKind::vector);
  EXPECT_EQ(use("product"), CoreKind::tensor);
  EXPECT_EQ(use("flash"), CoreKind::fused);
}

TEST(OperatorLatency, AFusedTailCostsTimeWhenLanesCannotKeepUp) {
  Graph graph;
  const std::int64_t rows = 256, width = 64;
  graph.tensors = {{.name = "x", .dims = {rows, 64}},
                   {.name = "w", .dims = {64, width}, .is_parameter = true},
                   {.name = "y", .dims = {rows, width}, .producer = 0},
                   {.name = "z", .dims = {rows, width}, .producer = 1}};
  graph.operators = {
      {.name = "linear", .kind = MatMul{1, rows, width, 64}, .inputs = {0, 1}, .outputs = {2}},
      {.name = "gelu", .kind = Elementwise{rows * width, 10}, .inputs = {2}, .outputs = {3}}};
  NestMemo memo;
  AcceleratorCores cores = small_cores();
  const auto all = [&] {
    return fused_latencies(graph, graph.operators[0], graph.operators[1], cores, memo).all;
  };
  cores.lanes = 1 << 20;
  const OperatorCost free = all();
  EXPECT_EQ(free.hbm_words, rows * 64 + 64 * width + rows * width);
  EXPECT_GE(free.cycles, free.tensor_cycles);
  cores.lanes = 1;
  cores.vector_cores = 1;
  EXPECT_EQ(all().cycles, 10 * rows * width);
  const double apart = operator_latencies(graph, graph.operators[0], cores, memo).all.cycles +
                       operator_latencies(graph, graph.operators[1], cores, memo).all.cycles;
  EXPECT_LT(all().cycles, apart);
}

/// Phaze's estimates of BERT-Large's dropouts and layer norms (4 samples of 512 tokens, 16 heads)
/// on 2 × 128 and 512 × 256 lanes, in cycles.
TEST(OperatorLatency, PublishedLanesTakeThePublishedCycles) {
  Graph graph;
  const std::int64_t hidden = 4 * 512 * 1024, scores = 4 * 16 * 512 * 512;
  graph.tensors = {{.name = "h", .dims = {hidden}}, {.name = "s", .dims = {scores}}};
  const Operator norm{
      .name = "norm", .kind = Normalization{hidden, 1024}, .inputs = {}, .outputs = {0}};
  Operator dropout{.name = "dropout",
                   .kind = Elementwise{scores, 2, Elementwise::Keeps::mask},
                   .inputs = {},
                   .outputs = {1}};
  AcceleratorCores cores;
  cores.lane_costs = LaneCosts::published;
  NestMemo memo;
  const auto all = [&](const Operator& op, std::int64_t count, std::int64_t lanes) {
    cores.vector_cores = count;
    cores.lanes = lanes;
    return operator_latencies(graph, op, cores, memo).all.vector_cycles;
  };
  EXPECT_EQ(all(norm, 2, 128), 8192);
  EXPECT_EQ(all(norm, 1, 128), 16384);
  EXPECT_EQ(all(norm, 512, 256), 16);
  EXPECT_EQ(all(dropout, 2, 128), 131072);
  EXPECT_EQ(all(dropout, 512, 256), 256);
  dropout.pass = Pass::input_gradient;
  EXPECT_EQ(all(dropout, 2, 128), 65536);
  EXPECT_EQ(all(dropout, 512, 256), 128);
}

/// Where both HBM and the whole chip are the limit, the exact mapping takes as long as Sunstone's
/// estimate of BERT-Large's projections on Phaze's TPUv4 template (40,960 cycles); on one core,
/// that estimate is below what its 16,384 units could multiply in (131,072).
TEST(PublishedCores, ProjectionOfBertLarge) {
  const double bytes = 0x1p27;
  const LoopNest gemm = published_forward_nest(gemm_nest(2048, 1024, 1024));
  EXPECT_EQ(map_nest(gemm, published_systolic_machine(8, 128, 128, bytes)).cost.cycles, 40960);
  EXPECT_GT(map_nest(gemm, published_systolic_machine(1, 128, 128, bytes)).cost.cycles, 131072);
}

TEST(NestMemoThreads, GetTheSameMappings) {
  NestMemo memo;
  std::vector<MappedNest> found(64);
  parallel_for(found.size(), [&](std::size_t i) {
    found[i] =
        memo.map(gemm_nest(16 + static_cast<std::int64_t>(i % 8), 32, 24), small_cores().tensor);
  });
  EXPECT_EQ(memo.size(), 8);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const MappedNest alone =
        map_nest(gemm_nest(16 + static_cast<std::int64_t>(i % 8), 32, 24), small_cores().tensor);
    EXPECT_EQ(found[i].mapping, alone.mapping);
    EXPECT_EQ(found[i].cost.cycles, alone.cost.cycles);
  }
}

}  // namespace
}  // namespace braid
