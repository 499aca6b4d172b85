#include "braid/plan/bound.h"

#include <gtest/gtest.h>

#include "braid/base/error.h"

namespace braid {
namespace {

/// One matrix product with a weight, m × k by k × n.
Graph one_matmul(std::int64_t m, std::int64_t n, std::int64_t k) {
  Graph graph;
  graph.name = "one";
  graph.tensors = {{"x", {m, k}, Dtype::bf16, false, -1},
                   {"w", {k, n}, Dtype::bf16, true, -1},
                   {"y", {m, n}, Dtype::bf16, false, 0}};
  graph.operators = {{"matmul", MatMul{1, m, n, k, true, false}, {0, 1}, {2}, Split::column, 0}};
  graph.layers = {{"layer", 0, 1, 0}};
  graph.inputs = {0};
  graph.outputs = {2};
  return graph;
}

System system_of(std::int64_t devices, double flops_per_s, double bytes_per_s) {
  System system;
  system.name = "test";
  DeviceGroup group;
  group.chip.name = "test";
  group.chip.peaks = {{Dtype::bf16, flops_per_s}};
  group.chip.memory = {"RAM", 1e12, bytes_per_s};
  group.devices_per_node = devices;
  group.intra_node.size = devices;
  group.intra_node.bytes_per_s = group.intra_node.unit_bytes_per_s = 1e9;
  system.groups = {group};
  system.device_count = devices;
  return system;
}

TEST(LowerBound, ArithmeticAtPeakOfAllDevices) {
  const Graph graph = one_matmul(100, 200, 300);
  // Forward and weight gradient; the graph's input needs no gradient or does, by the graph's own
  // count.
  const LowerBound bound = lower_bound(graph, {}, 10, system_of(4, 1e6, 1e30));
  EXPECT_GE(bound.time_s, 2 * 2.0 * 100 * 200 * 300 * 10 / 4e6);
  EXPECT_LE(bound.time_s, 3 * 2.0 * 100 * 200 * 300 * 10 / 4e6);
  EXPECT_EQ(bound.binding, "arithmetic at peak");
}

TEST(LowerBound, MemoryTraffic) {
  const Graph graph = one_matmul(1, 1000, 1000);
  const LowerBound bound = lower_bound(graph, {}, 1, system_of(1, 1e30, 1e6));
  // Weight twice, gradient once, optimizer state in and out: 2·2 + 4 + 2·12 bytes a parameter.
  EXPECT_DOUBLE_EQ(bound.time_s, 32e6 / 1e6);
  EXPECT_EQ(bound.binding, "memory bandwidth");
}

TEST(LowerBound, ScalesWithTheBatchAndTheDevices) {
  const Graph graph = one_matmul(100, 200, 300);
  const double one = lower_bound(graph, {}, 8, system_of(1, 1e6, 1e30)).time_s;
  EXPECT_DOUBLE_EQ(lower_bound(graph, {}, 16, system_of(1, 1e6, 1e30)).time_s, 2 * one);
  EXPECT_DOUBLE_EQ(lower_bound(graph, {}, 8, system_of(2, 1e6, 1e30)).time_s, one / 2);
}

TEST(LowerBound, RefusesAPrecisionThatTheChipDoesNotList) {
  Precision precision;
  precision.matmul = Dtype::f8;
  try {
    lower_bound(one_matmul(1, 1, 1), precision, 1, system_of(1, 1e6, 1e6));
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("lists no fp8 peak"), std::string::npos);
  }
}

}  // namespace
}  // namespace braid
