#include "braid/system/named_groups.h"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "braid/system/links.h"
#include "braid/system/named_hierarchy.h"

namespace braid {
namespace {

using Groups = std::vector<std::vector<std::int64_t>>;

constexpr Collective kCollectives[] = {Collective::all_reduce, Collective::reduce_scatter,
                                       Collective::all_gather};

std::int64_t pick(std::mt19937_64& random, std::int64_t least, std::int64_t most) {
  return least + static_cast<std::int64_t>(random() % static_cast<unsigned>(most - least + 1));
}

NetworkLevel network(std::mt19937_64& random, std::int64_t size) {
  NetworkLevel level;
  level.topology = pick(random, 0, 2) == 0 ? Topology::ring : Topology::switched;
  level.size = size;
  level.bytes_per_s = 1e9 * static_cast<double>(pick(random, 1, 50));
  level.unit_bytes_per_s = level.bytes_per_s * static_cast<double>(pick(random, 1, 8));
  level.latency_s = 1e-6 * static_cast<double>(pick(random, 0, 30));
  level.rails = static_cast<int>(pick(random, 1, 4));
  level.oversubscription = static_cast<double>(pick(random, 1, 2));
  level.half_bytes = pick(random, 0, 1) == 0 ? 0 : 1e5;
  return level;
}

DeviceGroup nodes_of(std::mt19937_64& random, std::int64_t nodes, std::int64_t per_node) {
  DeviceGroup group;
  group.nodes = nodes;
  group.devices_per_node = per_node;
  group.intra_node = network(random, per_node);
  return group;
}

void count(System& system) {
  system.device_count = 0;
  std::int64_t nodes = 0;
  for (const DeviceGroup& group : system.groups) {
    system.device_count += group.nodes * group.devices_per_node;
    nodes += group.nodes;
  }
  std::int64_t units = nodes;
  for (NetworkLevel& level : system.levels) {
    if (&level == &system.levels.back()) level.size = units;
    units = (units + level.size - 1) / level.size;
  }
}

/// Groups of all devices, `stride` apart.
Groups even_groups(std::int64_t devices, std::int64_t stride, std::int64_t size) {
  Groups groups;
  for (std::int64_t block = 0; block + stride * size <= devices; block += stride * size) {
    for (std::int64_t offset = 0; offset < stride; ++offset) {
      std::vector<std::int64_t>& group = groups.emplace_back();
      for (std::int64_t i = 0; i < size; ++i) group.push_back(block + offset + i * stride);
    }
  }
  return groups;
}

TEST(NamedGroups, OfTwoEqualGroupsAreThoseOfOne) {
  std::mt19937_64 random(1);
  for (int trial = 0; trial < 300; ++trial) {
    System one;
    const std::int64_t per_node = std::int64_t{1} << pick(random, 0, 3);
    one.groups = {nodes_of(random, 8, per_node)};
    one.levels = {network(random, 4), network(random, 2)};
    if (pick(random, 0, 1) == 0) one.levels.erase(one.levels.begin());
    count(one);
    System two = one;
    two.groups.front().nodes = 4;
    two.groups.push_back(two.groups.front());
    two.groups.back().chip.name = "other";
    const std::int64_t stride = std::int64_t{1} << pick(random, 0, 3);
    const std::int64_t size = std::int64_t{2} << pick(random, 0, 2);
    if (stride * size > one.device_count) continue;
    const Groups groups = even_groups(one.device_count, stride, size);
    for (const Collective collective : kCollectives) {
      const double expected_s =
          collective_time(collective, 1e8, span_of(one, stride, size), one).time_s;
      EXPECT_DOUBLE_EQ(named_groups_time_s(collective, 1e8, groups, two), expected_s) << trial;
    }
  }
}

TEST(NamedHierarchy, IsTheClosedFormWhereNodesAreEqual) {
  std::mt19937_64 random(2);
  int level_by_level = 0;
  for (int trial = 0; trial < 1000; ++trial) {
    System system;
    system.groups = {nodes_of(random, 8, std::int64_t{1} << pick(random, 0, 3))};
    system.levels = {network(random, 4), network(random, 2)};
    if (pick(random, 0, 1) == 0) system.levels.erase(system.levels.begin());
    count(system);
    const std::int64_t stride = std::int64_t{1} << pick(random, 0, 3);
    const std::int64_t size = std::int64_t{2} << pick(random, 0, 3);
    if (stride * size > system.device_count) continue;
    const Groups groups = even_groups(system.device_count, stride, size);
    for (const Collective collective : kCollectives) {
      const double bytes = static_cast<double>(pick(random, 1, 1000)) * 1e5;
      const CollectiveTime expected =
          collective_time(collective, bytes, span_of(system, stride, size), system);
      const double time_s = named_hierarchy_time_s(collective, bytes, groups, system);
      if (expected.algorithm == CollectiveAlgorithm::hierarchical) {
        ++level_by_level;
        EXPECT_NEAR(time_s, expected.time_s, 1e-12 * expected.time_s) << trial;
      } else {
        EXPECT_GE(time_s, expected.time_s * (1 - 1e-12)) << trial;
      }
    }
  }
  EXPECT_GT(level_by_level, 300);
}

TEST(NamedHierarchy, GoesAtThePaceOfTheSlowestUnit) {
  // Four devices at 8 GB/s in one node, two at 2 GB/s in the other; cards of 4 and 3 GB/s.
  System system;
  system.groups.resize(2);
  for (std::size_t g = 0; g < 2; ++g) {
    DeviceGroup& group = system.groups[g];
    group.devices_per_node = g == 0 ? 4 : 2;
    group.intra_node.size = group.devices_per_node;
    group.intra_node.bytes_per_s = g == 0 ? 8e9 : 2e9;
    group.intra_node.efficiency = 1;
    group.node_bytes_per_s = g == 0 ? 4e9 : 3e9;
  }
  NetworkLevel between;
  between.size = 2;
  between.bytes_per_s = 1e9;
  between.unit_bytes_per_s = 8e9;
  between.efficiency = 1;
  system.levels = {between};
  system.device_count = 6;
  // All six: the exchange inside the second node takes twice 1/2 of a gigabyte at 2 GB/s (0.5 s),
  // in the first twice 3/4 at 8 GB/s; between them the slower card carries twice 1/2 (1/3 s).
  const Groups all{{0, 1, 2, 3, 4, 5}};
  EXPECT_NEAR(named_hierarchy_time_s(Collective::all_reduce, 1e9, all, system), 0.5 + 1.0 / 3,
              1e-12);
  EXPECT_NEAR(named_hierarchy_time_s(Collective::all_gather, 1e9, all, system), 0.25 + 0.5 / 3,
              1e-12);
  // One ring sends twice 5/6 of a gigabyte over the slowest link, in a sixth at a time.
  const double ring_s = 10 * (1e9 / 6) / 2e9;
  EXPECT_NEAR(named_groups_time_s(Collective::all_reduce, 1e9, all, system),
              std::min(ring_s, 0.5 + 1.0 / 3), 1e-12);
  // Two groups of two share the cards.
  const Groups pairs{{0, 4}, {1, 5}};
  EXPECT_NEAR(named_hierarchy_time_s(Collective::all_reduce, 1e9, pairs, system), 2.0 / 3, 1e-12);
}

TEST(NamedGroups, AreNoSlowerThanRingsNorOnFasterNetworks) {
  std::mt19937_64 random(3);
  int faster_than_rings = 0;
  for (int trial = 0; trial < 300; ++trial) {
    System system;
    system.groups = {nodes_of(random, pick(random, 1, 3), pick(random, 1, 4)),
                     nodes_of(random, pick(random, 1, 3), pick(random, 1, 4))};
    system.levels = {network(random, 8)};
    count(system);
    std::vector<std::int64_t> devices;
    for (std::int64_t d = 0; d < system.device_count; ++d) devices.push_back(d);
    std::shuffle(devices.begin(), devices.end(), random);
    const std::int64_t size = pick(random, 2, 4);
    Groups groups;
    for (std::size_t i = 0; i + static_cast<std::size_t>(size) <= devices.size();
         i += static_cast<std::size_t>(size)) {
      std::vector<std::int64_t>& group = groups.emplace_back();
      for (std::int64_t k = 0; k < size; ++k)
        group.push_back(devices[i + static_cast<std::size_t>(k)]);
      std::sort(group.begin(), group.end());
    }
    if (groups.empty()) continue;
    const double time_s = named_groups_time_s(Collective::all_reduce, 1e8, groups, system);
    const std::vector<double> rings = ring_all_reduce_s(system, groups, 1e8);
    const double ring_s = *std::max_element(rings.begin(), rings.end());
    EXPECT_LE(time_s, ring_s) << trial;
    EXPECT_GT(time_s, 0) << trial;
    faster_than_rings += time_s < ring_s ? 1 : 0;
    const double half_s = named_groups_time_s(Collective::all_gather, 1e8, groups, system);
    EXPECT_LE(half_s, time_s) << trial;
    EXPECT_GE(half_s, time_s / 2 * (1 - 1e-12)) << trial;
    System faster = system;
    NetworkLevel& level =
        pick(random, 0, 1) == 0 ? faster.levels.front() : faster.groups[1].intra_node;
    level.bytes_per_s *= 2;
    level.unit_bytes_per_s *= 2;
    EXPECT_LE(named_groups_time_s(Collective::all_reduce, 1e8, groups, faster),
              time_s * (1 + 1e-12))
        << trial;
  }
  EXPECT_GT(faster_than_rings, 50);
}

}  // namespace
}  // namespace braid
