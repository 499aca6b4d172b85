#include "braid/plan/network_bound.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "braid/frontend/model.h"

namespace braid {
namespace {

constexpr double kPeak = 1e9;

/// Layers of one product each, all of [rows × widths[i]]·[widths[i] × widths[i + 1]].
Graph chain(std::int64_t rows, const std::vector<std::int64_t>& widths,
            Split split = Split::replicated) {
  Graph graph;
  graph.name = "chain";
  graph.tensors = {{"x", {rows, widths[0]}, Dtype::bf16, false, -1}};
  graph.inputs = {0};
  TensorId input = 0;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    const std::string name = std::to_string(i);
    const auto op = static_cast<OperatorId>(i);
    const auto weight = static_cast<TensorId>(graph.tensors.size());
    graph.tensors.push_back({"w" + name, {widths[i], widths[i + 1]}, Dtype::bf16, true, -1});
    graph.tensors.push_back({"y" + name, {rows, widths[i + 1]}, Dtype::bf16, false, op});
    graph.operators.push_back({"matmul" + name,
                               MatMul{1, rows, widths[i + 1], widths[i], true, false},
                               {input, weight},
                               {weight + 1},
                               split,
                               op});
    graph.layers.push_back({"layer" + name, op, op + 1, -1});
    input = weight + 1;
  }
  graph.outputs = {input};
  return graph;
}

/// `nodes` of `devices_per_node` devices; a device sends `link` in its node and a node `uplink`.
System system_of(std::int64_t nodes, std::int64_t devices_per_node, double link, double uplink) {
  System system;
  system.name = "test";
  DeviceGroup group;
  group.chip.name = "test";
  group.chip.peaks = {{Dtype::bf16, kPeak}};
  group.chip.memory = {"RAM", 1e12, 1e12};
  group.nodes = nodes;
  group.devices_per_node = devices_per_node;
  group.intra_node.size = devices_per_node;
  group.intra_node.bytes_per_s = group.intra_node.unit_bytes_per_s = link;
  system.groups = {group};
  if (nodes > 1) {
    NetworkLevel level;
    level.size = nodes;
    level.bytes_per_s = uplink / static_cast<double>(devices_per_node);
    level.unit_bytes_per_s = uplink;
    system.levels = {level};
  }
  system.device_count = nodes * devices_per_node;
  return system;
}

// Three layers of [10 × 100]·[100 × 100], for 64 samples: 5 products forward and backward beyond
// the first layer's missing input gradient, so 8 of 200,000 FLOPs a sample.
const std::vector<std::int64_t> kEven = {100, 100, 100, 100};
constexpr double kUnitSeconds = 8 * 2.0 * 10 * 100 * 100 * 64 / kPeak;
constexpr double kWeights = 3 * 100 * 100;
constexpr double kBothWays = 2 * 2.0 * 10 * 100 * 64;  // bf16 tensor and gradient, all samples.

TEST(NetworkBound, OneDeviceSendsNothing) {
  EXPECT_EQ(network_bound_s(chain(10, kEven), {}, 64, system_of(1, 1, 1e3, 0)), 0);
}

TEST(NetworkBound, OnHopelessNetworksOneUnitDoesItAll) {
  const double bound_s = network_bound_s(chain(10, kEven), {}, 64, system_of(1, 2, 1e-6, 0));
  EXPECT_NEAR(bound_s, kUnitSeconds, 1e-9 * kUnitSeconds);
}

TEST(NetworkBound, WorkOfOneUnitAndTensorsBetweenTwoEvenOut) {
  const double rate = kBothWays / kUnitSeconds;  // Of two devices: sending all takes as long.
  const double bound_s = network_bound_s(chain(10, kEven), {}, 64, system_of(1, 2, rate / 2, 0));
  EXPECT_NEAR(bound_s, kUnitSeconds / 2, 1e-9 * bound_s);
}

TEST(NetworkBound, GradientsAndWeightsBetweenTwoUnits) {
  // So many samples that sharing the weights is cheapest: gradients of four bytes, weights of two.
  const double bound_s = network_bound_s(chain(10, kEven), {}, 1'000'000, system_of(1, 2, 1e3, 0));
  EXPECT_NEAR(bound_s, kWeights * 6 / 2e3, 1e-9 * bound_s);
}

TEST(NetworkBound, NodesAreUnitsToo) {
  // Links inside the node are free: only what leaves it counts, and four devices work in a node.
  const double bound_s = network_bound_s(chain(10, kEven), {}, 64, system_of(2, 4, 1e15, 1e-6));
  EXPECT_NEAR(bound_s, kUnitSeconds / 4, 1e-9 * bound_s);
  const double sync_s =
      network_bound_s(chain(10, kEven), {}, 1'000'000, system_of(3, 4, 1e15, 1e3));
  EXPECT_NEAR(sync_s, kWeights * 6 / 3e3, 1e-9 * sync_s);
}

TEST(NetworkBound, OuterLevelsAreCutsToo) {
  System system = system_of(4, 1, 1e15, 1e15);
  system.levels.front().size = 2;
  NetworkLevel racks;
  racks.size = 2;
  racks.bytes_per_s = racks.unit_bytes_per_s = 1e3;
  system.levels.push_back(racks);
  const double bound_s = network_bound_s(chain(10, kEven), {}, 1'000'000, system);
  EXPECT_NEAR(bound_s, kWeights * 6 / 2e3, 1e-9 * bound_s);
}

TEST(NetworkBound, ANarrowTensorBeforeTheLossSpoilsNothing) {
  const System system = system_of(1, 2, kBothWays / kUnitSeconds / 2, 0);
  const double plain_s = network_bound_s(chain(10, kEven), {}, 64, system);
  const double narrow_s = network_bound_s(chain(10, {100, 100, 100, 100, 1, 1}), {}, 64, system);
  EXPECT_GE(narrow_s, plain_s);
}

TEST(NetworkBound, WeightsThatNoUnitCanHold) {
  const Graph graph = chain(10, kEven);
  System system = system_of(1, 2, 1e3, 0);
  system.groups[0].chip.memory.bytes = 40'000;  // Of 60,000 bytes.
  // Sending tensors takes less than fetching 20,000 bytes for up to five samples.
  EXPECT_NEAR(network_bound_s(graph, {}, 4, system), kBothWays / 64 * 4 / 2e3, 1e-9);
  EXPECT_NEAR(network_bound_s(graph, {}, 6, system), 20'000 / 2e3, 1e-9);
  system.groups[0].chip.host = Memory{"host", 20'000, 1e9};
  EXPECT_LT(network_bound_s(graph, {}, 6, system), 1);
}

TEST(NetworkBound, TensorParallelismSumsTensorsOverItsRanks) {
  const System system = system_of(1, 2, 1, 0);
  // One layer can only be split by rows here, so that its output is summed and given back.
  const Graph row = chain(10, {100, 50}, Split::row);
  const double unit_s = 2 * 2.0 * 10 * 100 * 50 / kPeak;
  const double sum_s = 2 * 2.0 * 10 * 50 / 2;
  EXPECT_NEAR(network_bound_s(row, {}, 1, system), 1 / (1 / unit_s + 1 / sum_s), 1e-12);
  // Columns of the graph's input are nobody's to sum.
  EXPECT_EQ(network_bound_s(chain(10, {100, 50}, Split::column), {}, 1, system), 0);
}

TEST(NetworkBound, ExpertsAndTablesAreLeftOut) {
  Graph graph;
  graph.name = "sparse";
  graph.tensors = {{"ids", {10}, Dtype::i32, false, -1},
                   {"table", {1000, 100}, Dtype::bf16, true, -1},
                   {"x", {10, 100}, Dtype::bf16, false, 0},
                   {"experts", {4, 3, 100, 100}, Dtype::bf16, true, -1},
                   {"y", {10, 100}, Dtype::bf16, false, 1}};
  graph.operators = {{"embedding", Embedding{1000, 100, 10, 1}, {0, 1}, {2}, Split::vocab, 0},
                     {"experts", MoeExperts{10, 100, 100, 4, 2, 3}, {2, 3}, {4}, Split::expert, 1}};
  graph.layers = {{"embedding", 0, 1, -1}, {"experts", 1, 2, -1}};
  graph.inputs = {0};
  graph.outputs = {4};
  EXPECT_EQ(network_bound_s(graph, {}, 64, system_of(1, 2, 1, 0)), 0);
}

TEST(NetworkBound, BandwidthMatricesAndUnlikeDevices) {
  System system = system_of(1, 2, 1e15, 0);
  system.groups.push_back(system.groups.front());
  system.groups[1].chip.peaks = {{Dtype::bf16, 2 * kPeak}};
  system.device_count = 4;
  const Graph graph = chain(10, kEven);
  system.levels = system_of(2, 2, 1, 1e-6).levels;
  EXPECT_NEAR(network_bound_s(graph, {}, 64, system), kUnitSeconds / 4, 1e-6 * kUnitSeconds);
  system.bandwidth_matrix.assign(16, 1e-6);
  EXPECT_NEAR(network_bound_s(graph, {}, 64, system), kUnitSeconds / 2, 1e-6 * kUnitSeconds);
}

TEST(NetworkBound, FasterLinksMoreMemoryAndSmallerBatchesNeverRaiseIt) {
  std::mt19937_64 random(7);
  const auto log_uniform = [&random](double least, double most) {
    return std::exp(std::uniform_real_distribution<>(std::log(least), std::log(most))(random));
  };
  const Graph graph = load_model("mixtral-8x7b", {.seq_len = 512, .dims = {}});
  int positive = 0;
  for (int trial = 0; trial < 40; ++trial) {
    const std::int64_t nodes = 1 + static_cast<std::int64_t>(random() % 4);
    System system = system_of(nodes, 2, log_uniform(1e3, 1e12), log_uniform(1e3, 1e12));
    system.groups[0].chip.peaks = {{Dtype::bf16, log_uniform(1e9, 1e15)}};
    system.groups[0].chip.memory.bytes = log_uniform(1e7, 1e11);
    const double bound_s = network_bound_s(graph, {}, 16, system);
    positive += bound_s > 0 ? 1 : 0;
    EXPECT_LE(network_bound_s(graph, {}, 8, system), bound_s);
    System roomier = system;
    roomier.groups[0].chip.memory.bytes *= 3;
    EXPECT_LE(network_bound_s(graph, {}, 16, roomier), bound_s);
    System faster = system;
    faster.groups[0].intra_node.bytes_per_s *= 3;
    faster.groups[0].intra_node.unit_bytes_per_s *= 3;
    EXPECT_LE(network_bound_s(graph, {}, 16, faster), bound_s);
    if (nodes == 1) continue;
    faster.levels[0].unit_bytes_per_s *= 3;
    EXPECT_LE(network_bound_s(graph, {}, 16, faster), bound_s);
  }
  EXPECT_EQ(positive, 40);
}

}  // namespace
}  // namespace braid
