#include "braid/system/part.h"

#include <gtest/gtest.h>

#include "braid/system/links.h"

#include "system/network_level.h"

namespace braid {
namespace {

using test::level;

DeviceGroup group_with(const std::string& chip, Dtype dtype, std::int64_t nodes,
                       std::int64_t devices_per_node) {
  DeviceGroup group;
  group.chip.name = chip;
  group.chip.peaks = {{dtype, 1e12}};
  group.nodes = nodes;
  group.devices_per_node = devices_per_node;
  group.intra_node = level(Topology::switched, devices_per_node, 1e10, 1e10, 0);
  return group;
}

/// 2 nodes of 4, 3 of 2 and a last group of 2 nodes of 4 with only 5 devices.
System three_groups() {
  System system;
  system.name = "three";
  system.groups = {group_with("a", Dtype::f16, 2, 4), group_with("b", Dtype::bf16, 3, 2),
                   group_with("c", Dtype::f16, 2, 4)};
  system.levels = {level(Topology::switched, 7, 1e9, 4e9, 1e-6)};
  system.device_count = 19;
  return system;
}

TEST(Part, RunsAreFullNodesAndWhatIsLeft) {
  const std::vector<DeviceRun> expected = {
      {0, 0, 8, 4}, {1, 8, 6, 2}, {2, 14, 4, 4}, {2, 18, 1, 1}};
  EXPECT_EQ(device_runs(three_groups()), expected);
}

TEST(Part, AGroupKeepsItsDevicesAndLinks) {
  const System whole = three_groups();
  const std::int64_t first[] = {0, 8, 14};
  const std::int64_t count[] = {8, 6, 5};
  for (std::size_t g = 0; g < 3; ++g) {
    const System part = group_of(whole, g);
    ASSERT_EQ(part.groups.size(), 1U);
    EXPECT_EQ(part.device_count, count[g]);
    EXPECT_TRUE(is_homogeneous(part));
    for (std::int64_t a = 0; a < part.device_count; ++a) {
      EXPECT_EQ(chip_at(part, a).name, chip_at(whole, first[g] + a).name);
      for (std::int64_t b = 0; b < part.device_count; ++b) {
        EXPECT_EQ(link_bytes_per_s(part, a, b), link_bytes_per_s(whole, first[g] + a, first[g] + b))
            << g << " " << a << " " << b;
      }
    }
  }
}

TEST(Part, AGroupOfABandwidthMatrixHasItsSlowestEntries) {
  System whole = three_groups();
  whole.levels.clear();
  const auto n = whole.device_count;
  for (std::int64_t a = 0; a < n; ++a) {
    for (std::int64_t b = 0; b < n; ++b) {
      whole.bandwidth_matrix.push_back(a == b ? 0 : 1e6 * static_cast<double>(1 + a * n + b));
    }
  }
  const System part = group_of(whole, 1);  // Devices 8 to 13 in nodes of two.
  EXPECT_TRUE(part.bandwidth_matrix.empty());
  EXPECT_EQ(link_bytes_per_s(part, 0, 1), 1e6 * (1 + 8.0 * 19 + 9));   // From 8 to 9.
  EXPECT_EQ(link_bytes_per_s(part, 0, 2), 1e6 * (1 + 8.0 * 19 + 10));  // From 8 to 10.
  EXPECT_EQ(link_latency_s(part, 0, 2), 0);
}

TEST(Part, EqualNeighboursAreJoinedAndOthersAreNot) {
  System system = three_groups();
  system.groups[1] = system.groups[0];
  system.groups[1].nodes = 5;
  const System joined = with_equal_groups_joined(system);
  ASSERT_EQ(joined.groups.size(), 2U);
  EXPECT_EQ(joined.groups[0].nodes, 7);
  EXPECT_EQ(joined.groups[1], system.groups[2]);
  EXPECT_EQ(joined.device_count, system.device_count);
  EXPECT_EQ(with_equal_groups_joined(three_groups()), three_groups());
}

TEST(Part, ChipsWithoutAPeakAreLeftOut) {
  const System whole = three_groups();
  const auto half = part_with_peak(whole, Dtype::f16);
  ASSERT_TRUE(half.has_value());
  ASSERT_EQ(half->groups.size(), 2U);
  EXPECT_EQ(half->device_count, 13);  // The last group's last node is still partly filled.
  EXPECT_EQ(half->levels.front().size, 4);
  EXPECT_EQ(link_bytes_per_s(*half, 0, 8), link_bytes_per_s(whole, 0, 14));
  const auto brain = part_with_peak(whole, Dtype::bf16);
  ASSERT_TRUE(brain.has_value());
  EXPECT_EQ(brain->device_count, 6);
  EXPECT_TRUE(is_homogeneous(*brain));
  EXPECT_FALSE(part_with_peak(whole, Dtype::i64).has_value());
}

TEST(Part, ABandwidthMatrixLosesTheRowsAndColumnsOfWhatIsLeftOut) {
  System whole = three_groups();
  whole.levels.clear();
  const auto n = whole.device_count;
  for (std::int64_t i = 0; i < n * n; ++i) {
    whole.bandwidth_matrix.push_back(i % (n + 1) == 0 ? 0 : static_cast<double>(i));
  }
  const auto half = part_with_peak(whole, Dtype::f16);
  ASSERT_TRUE(half.has_value());
  ASSERT_EQ(half->bandwidth_matrix.size(), 13U * 13U);
  const auto real = [](std::int64_t device) { return device < 8 ? device : device + 6; };
  for (std::int64_t a = 0; a < 13; ++a) {
    for (std::int64_t b = 0; b < 13; ++b) {
      if (a == b) continue;
      EXPECT_EQ(link_bytes_per_s(*half, a, b), link_bytes_per_s(whole, real(a), real(b)));
    }
  }
}

}  // namespace
}  // namespace braid
