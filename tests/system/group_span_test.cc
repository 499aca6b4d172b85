#include "braid/system/group_span.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "braid/system/aligned_span.h"
#include "braid/system/named_groups.h"

namespace braid {
namespace {

/// `sizes` of each level: devices a node, nodes a unit of the next level, …
System hierarchy(const std::vector<std::int64_t>& sizes, std::int64_t device_count) {
  System system;
  system.groups.resize(1);
  system.groups[0].devices_per_node = sizes[0];
  for (std::size_t l = 1; l < sizes.size(); ++l) {
    system.levels.emplace_back();
    system.levels.back().size = sizes[l];
  }
  system.device_count = device_count;
  return system;
}

std::vector<std::vector<std::int64_t>> groups_of(std::int64_t stride, std::int64_t size,
                                                 std::int64_t device_count) {
  std::vector<std::vector<std::int64_t>> groups;
  for (std::int64_t block = 0; block + stride * size <= device_count; block += stride * size) {
    for (std::int64_t offset = 0; offset < stride; ++offset) {
      groups.emplace_back();
      for (std::int64_t i = 0; i < size; ++i) groups.back().push_back(block + offset + i * stride);
    }
  }
  return groups;
}

std::set<std::int64_t> units_of(const std::vector<std::int64_t>& group, std::int64_t capacity) {
  std::set<std::int64_t> units;
  for (const std::int64_t device : group) units.insert(device / capacity);
  return units;
}

/// By listing all groups and the units of each.
GroupSpan listed_span(const std::vector<std::int64_t>& sizes, std::int64_t stride,
                      std::int64_t size, std::int64_t device_count) {
  std::vector<std::int64_t> capacities;
  for (std::size_t l = 0; l + 1 < sizes.size(); ++l) {
    capacities.push_back((l == 0 ? 1 : capacities.back()) * sizes[l]);
  }
  capacities.push_back(device_count);
  const auto groups = groups_of(stride, size, device_count);
  const auto reach = [&](const std::vector<std::int64_t>& group) {
    std::vector<std::size_t> touched;
    for (std::size_t l = capacities.size(); l-- > 0;) {
      touched.push_back(units_of(group, capacities[l]).size());
    }
    return touched;
  };
  const auto& widest =
      *std::max_element(groups.begin(), groups.end(),
                        [&](const auto& a, const auto& b) { return reach(a) < reach(b); });
  GroupSpan span;
  for (std::size_t l = 0; l < capacities.size(); ++l) {
    const std::int64_t lower = l == 0 ? 1 : capacities[l - 1];
    std::int64_t members = 0;
    for (const std::int64_t unit : units_of(widest, capacities[l])) {
      const std::set<std::int64_t> parts = units_of(widest, lower);
      members = std::max<std::int64_t>(
          members, std::count_if(parts.begin(), parts.end(), [&](std::int64_t part) {
            return part * lower / capacities[l] == unit;
          }));
    }
    std::int64_t sharing = 1;
    for (std::int64_t unit = 0; l > 0 && members > 1 && unit * lower < device_count; ++unit) {
      sharing = std::max<std::int64_t>(
          sharing, std::count_if(groups.begin(), groups.end(), [&](const auto& group) {
            const std::set<std::int64_t> units = units_of(group, lower);
            return units.size() > 1 && units.count(unit) > 0;
          }));
    }
    span.members.push_back(members);
    span.sharing.push_back(sharing);
  }
  return span;
}

TEST(GroupSpan, EqualsAListOfAllGroups) {
  std::mt19937_64 random(8);
  const auto pick = [&](std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(random() % static_cast<unsigned>(most - least + 1));
  };
  for (int trial = 0; trial < 3000; ++trial) {
    std::vector<std::int64_t> sizes{pick(1, 8)};
    std::int64_t devices = sizes[0];
    for (std::int64_t levels = pick(1, 2); levels > 0; --levels) {
      sizes.push_back(pick(1, 5));
      devices *= sizes.back();
    }
    // The last node may be partly filled.
    devices = std::max<std::int64_t>(1, devices - pick(0, sizes[0] - 1));
    const std::int64_t size = pick(1, devices);
    const std::int64_t stride = pick(1, devices / size);
    const GroupSpan span = span_of(hierarchy(sizes, devices), stride, size);
    const GroupSpan listed = listed_span(sizes, stride, size, devices);
    EXPECT_EQ(span.members, listed.members) << devices << " devices, " << size << " x " << stride;
    EXPECT_EQ(span.sharing, listed.sharing) << devices << " devices, " << size << " x " << stride;
  }
}

TEST(GroupSpan, GroupsThatFillNoNodeEvenlyReachOverItsEdge) {
  // Devices 6, 7 and 8 are one group: two nodes, where the second of three nodes sends for both of
  // the groups that it holds in part.
  const GroupSpan three = span_of(hierarchy({8, 3}, 24), 1, 3);
  EXPECT_EQ(three.members, (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(three.sharing, (std::vector<std::int64_t>{1, 2}));
  // Thirteen devices in one group: eight and five.
  const GroupSpan all = span_of(hierarchy({8, 2}, 13), 1, 13);
  EXPECT_EQ(all.members, (std::vector<std::int64_t>{8, 2}));
  EXPECT_EQ(all.sharing, (std::vector<std::int64_t>{1, 1}));
}

TEST(AlignedSpan, IsThatOfAnyGroupWhereEdgesMeet) {
  for (const std::int64_t stride : {1, 2, 4, 8}) {
    for (const std::int64_t size : {1, 2, 4, 8}) {
      const System system = hierarchy({4, 4, 4}, 64);
      EXPECT_EQ(aligned_span(system, stride, size).members, span_of(system, stride, size).members);
      EXPECT_EQ(aligned_span(system, stride, size).sharing, span_of(system, stride, size).sharing);
    }
  }
}

TEST(AlignedSpan, NamedGroupsInsideANodeNeverLeaveIt) {
  // Blocks of three reach over the edges of nodes of four, these two groups do not.
  const System system = load_system("p3.8xlarge:3nodes");
  const std::vector<std::vector<std::int64_t>> groups{{0, 1, 2}, {8, 9, 10}};
  const double inside_s =
      collective_time(Collective::all_reduce, 1e8, GroupSpan{{3, 1}, {1, 1}}, system).time_s;
  EXPECT_DOUBLE_EQ(named_groups_time_s(Collective::all_reduce, 1e8, groups, system), inside_s);
  EXPECT_LT(
      inside_s,
      0.5 * collective_time(Collective::all_reduce, 1e8, span_of(system, 1, 3), system).time_s);
}

}  // namespace
}  // namespace braid
