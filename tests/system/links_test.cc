#include "braid/system/links.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "braid/system/collective.h"
#include "braid/system/topology.h"

#include "system/network_level.h"

namespace braid {
namespace {

using test::level;

DeviceGroup group(const std::string& chip, std::int64_t nodes, std::int64_t devices,
                  double inner_bytes_per_s, double node_bytes_per_s) {
  DeviceGroup made;
  made.chip.name = chip;
  made.nodes = nodes;
  made.devices_per_node = devices;
  made.intra_node = level(Topology::switched, devices, inner_bytes_per_s, inner_bytes_per_s, 1e-6);
  made.node_bytes_per_s = node_bytes_per_s;
  return made;
}

/// Three nodes of four fast devices at 1 GB/s, two of two slow devices at 5 GB/s.
System mixed() {
  System system;
  system.groups = {group("fast", 3, 4, 20e9, 1e9), group("slow", 2, 2, 6e9, 5e9)};
  system.levels = {level(Topology::switched, 5, 1.25e9, 5e9, 1e-5)};
  system.device_count = 16;
  return system;
}

TEST(Placement, CountsNodesAcrossGroups) {
  const System system = mixed();
  EXPECT_EQ(placement_of(system, 0), (Placement{0, 0, 0}));
  EXPECT_EQ(placement_of(system, 11), (Placement{0, 2, 3}));
  EXPECT_EQ(placement_of(system, 12), (Placement{1, 3, 0}));
  EXPECT_EQ(placement_of(system, 15), (Placement{1, 4, 1}));
  EXPECT_EQ(chip_at(system, 11).name, "fast");
  EXPECT_EQ(chip_at(system, 12).name, "slow");
}

TEST(Placement, NamesGroupsAndTheirChipsOnce) {
  System system = mixed();
  EXPECT_EQ(groups_of(system, std::vector<std::int64_t>{13, 0, 12, 3}),
            (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(groups_of(system, std::vector<std::int64_t>{15}), std::vector<std::size_t>{1});
  EXPECT_EQ(chip_names_of(system), "fast + slow");
  // A name that is part of another is a name of its own.
  system.groups.push_back(group("fast", 1, 4, 20e9, 1e9));
  system.groups.push_back(group("low", 1, 4, 20e9, 1e9));
  EXPECT_EQ(chip_names_of(system), "fast + slow + low");
  EXPECT_EQ(chip_names_of(system, std::vector<std::size_t>{1, 2}), "slow + fast");
}

TEST(Links, TheSlowerEndDecides) {
  const System system = mixed();
  EXPECT_EQ(link_bytes_per_s(system, 0, 3), 20e9);
  EXPECT_EQ(link_bytes_per_s(system, 12, 13), 6e9);
  EXPECT_EQ(link_bytes_per_s(system, 0, 4), 1e9);    // fast to fast
  EXPECT_EQ(link_bytes_per_s(system, 0, 15), 1e9);   // fast to slow
  EXPECT_EQ(link_bytes_per_s(system, 12, 15), 5e9);  // slow to slow
  EXPECT_EQ(link_bytes_per_s(system, 7, 7), std::numeric_limits<double>::infinity());
  EXPECT_EQ(link_latency_s(system, 0, 3), 1e-6);
  EXPECT_EQ(link_latency_s(system, 0, 15), 1e-5);
  EXPECT_EQ(link_latency_s(system, 7, 7), 0);
  EXPECT_EQ(level_between(system, 0, 3), 0U);
  EXPECT_EQ(level_between(system, 3, 4), 1U);
}

TEST(Links, ThreeLevelsAndOversubscription) {
  System system;
  system.groups = {group("chip", 8, 2, 100e9, 0)};
  system.levels = {level(Topology::switched, 4, 5e9, 10e9, 1e-6),
                   level(Topology::switched, 2, 1e9, 8e9, 1e-5)};
  system.levels[1].oversubscription = 4;
  system.device_count = 16;
  EXPECT_EQ(level_between(system, 0, 7), 1U);
  EXPECT_EQ(level_between(system, 7, 8), 2U);
  EXPECT_EQ(link_bytes_per_s(system, 0, 7), 10e9);
  EXPECT_EQ(link_bytes_per_s(system, 7, 8), 2e9);  // a rack's 8 GB/s over 4
  system.levels[0].rails = 8;                      // and now a rail of the node's 10 GB/s
  EXPECT_EQ(link_bytes_per_s(system, 7, 8), 1.25e9);
}

TEST(Links, AMatrixOverridesTheLevels) {
  System system;
  system.groups = {group("chip", 1, 3, 100e9, 0)};
  system.device_count = 3;
  const double none = 1;
  system.bandwidth_matrix = {none, 1e9, 2e9, 3e9, none, 4e9, 5e9, 6e9, none};
  EXPECT_EQ(link_bytes_per_s(system, 0, 1), 1e9);
  EXPECT_EQ(link_bytes_per_s(system, 1, 0), 3e9);
  EXPECT_EQ(link_bytes_per_s(system, 2, 1), 6e9);
  EXPECT_EQ(link_latency_s(system, 0, 1), 0);
  // 0 → 1 → 2 → 0: links of 1, 4 and 5 GB/s. The other way 2, 6 and 3.
  const std::vector<std::int64_t> ring = {0, 1, 2};
  const std::vector<std::int64_t> back = {0, 2, 1};
  EXPECT_NEAR(ring_all_reduce_s(system, ring, 3e9), 4 * 1e9 / 1e9, 1e-12);
  EXPECT_NEAR(ring_all_reduce_s(system, back, 3e9), 4 * 1e9 / 2e9, 1e-12);
  EXPECT_NEAR(point_to_point_s(system, 2, 0, 1e9, 4), 0.2, 1e-15);
}

TEST(Links, OneLinkOfAMeshRingAndTorus) {
  System system;
  system.groups = {group("chip", 1, 8, 84e9, 0)};
  system.device_count = 8;
  NetworkLevel& inside = system.groups[0].intra_node;
  inside.topology = Topology::fully_connected;
  EXPECT_NEAR(link_bytes_per_s(system, 0, 5), 12e9, 1);
  inside.topology = Topology::ring;
  EXPECT_EQ(link_bytes_per_s(system, 0, 1), 42e9);
  inside.topology = Topology::torus;
  inside.torus_dims = {2, 4};  // one link along the first dimension, two along the second
  EXPECT_NEAR(link_bytes_per_s(system, 0, 1), 28e9, 1);
}

TEST(Flows, ShareTheUplinkTheyLeaveBy) {
  const System system = mixed();
  // Two leave node 0 (1 GB/s), one stays; two enter node 4 (5 GB/s) and one of them is from node 0.
  const std::vector<Flow> flows = {{0, 4}, {1, 14}, {2, 3}, {12, 15}, {9, 9}};
  const std::vector<double> rates = flow_rates(system, flows, 1e6);
  EXPECT_EQ(rates[0], 0.5e9);
  EXPECT_EQ(rates[1], 0.5e9);
  EXPECT_EQ(rates[2], 20e9);
  EXPECT_EQ(rates[3], 2.5e9);
  EXPECT_EQ(rates[4], std::numeric_limits<double>::infinity());
}

/// Replay of a ring all-reduce step by step on the slowest of its links.
double replay(const System& system, const std::vector<std::int64_t>& ring, double bytes) {
  const double block = bytes / static_cast<double>(ring.size());
  double time_s = 0;
  for (std::size_t step = 0; step < 2 * (ring.size() - 1); ++step) {
    double slowest = 0;
    for (std::size_t i = 0; i < ring.size(); ++i) {
      const std::int64_t to = ring[(i + 1) % ring.size()];
      slowest = std::max(slowest, link_latency_s(system, ring[i], to) +
                                      block / link_bytes_per_s(system, ring[i], to));
    }
    time_s += slowest;
  }
  return time_s;
}

TEST(Rings, EqualAReplayWhenNothingIsShared) {
  const System system = mixed();
  std::mt19937_64 random(7);
  for (int trial = 0; trial < 500; ++trial) {
    // One device of each of some nodes: every uplink has one flow in each direction.
    std::vector<std::int64_t> ring;
    for (const std::int64_t first : {0, 4, 8, 12, 14}) {
      if (random() % 3 > 0) ring.push_back(first + static_cast<std::int64_t>(random() % 2));
    }
    std::shuffle(ring.begin(), ring.end(), random);
    if (ring.empty()) continue;
    const double bytes = 1e3 * static_cast<double>(1 + random() % 1000000);
    const double time_s = ring_all_reduce_s(system, ring, bytes);
    EXPECT_NEAR(time_s, replay(system, ring, bytes), 1e-9 * time_s);
  }
}

TEST(Rings, NeighboursInANodeAreBetterThanHoppingBetweenNodes) {
  const System system = mixed();
  const std::vector<std::int64_t> hopping = {0, 4, 1, 5, 2, 6};
  const std::vector<std::int64_t> ordered = {0, 1, 2, 4, 5, 6};
  // In order each node's uplink carries one flow out; hopping, three.
  const double block = 6e9 / 6;
  EXPECT_NEAR(ring_all_reduce_s(system, ordered, 6e9), 10 * (1e-5 + block / 1e9), 1e-9);
  EXPECT_NEAR(ring_all_reduce_s(system, hopping, 6e9), 10 * (1e-5 + block / (1e9 / 3)), 1e-9);
}

TEST(Rings, ConcurrentRingsShareTheNodesUplinks) {
  const System system = mixed();
  // Four data-parallel rings, one for each slot of the fast nodes: four flows on each uplink.
  std::vector<std::vector<std::int64_t>> rings;
  for (std::int64_t slot = 0; slot < 4; ++slot) rings.push_back({slot, 4 + slot, 8 + slot});
  const std::vector<double> times = ring_all_reduce_s(system, rings, 3e8);
  for (const double time_s : times) EXPECT_NEAR(time_s, 4 * (1e-5 + 1e8 / 0.25e9), 1e-9);
  // Rings of different sizes, and of one device.
  rings = {{0, 4}, {1}, {8, 12, 14}};
  const std::vector<double> mixed_sizes = ring_all_reduce_s(system, rings, 6e8);
  EXPECT_NEAR(mixed_sizes[0], 2 * (1e-5 + 3e8 / 1e9), 1e-9);
  EXPECT_EQ(mixed_sizes[1], 0);
  EXPECT_NEAR(mixed_sizes[2], 4 * (1e-5 + 2e8 / 1e9), 1e-9);
}

TEST(Rings, AgreeWithTheClosedFormOnAHomogeneousSystem) {
  System system;
  system.groups = {group("chip", 1, 8, 50e9, 0)};
  system.groups[0].intra_node.half_bytes = 1e5;
  system.groups[0].intra_node.efficiency = 0.8;
  system.device_count = 8;
  for (std::int64_t n = 2; n <= 8; ++n) {
    std::vector<std::int64_t> ring;
    for (std::int64_t d = 0; d < n; ++d) ring.push_back(d);
    const double time_s = ring_all_reduce_s(system, ring, 1e9);
    const CollectiveTime closed =
        collective_time(Collective::all_reduce, 1e9, span_of(system, 1, n), system);
    // The closed form may do better only by its lower latency.
    EXPECT_LE(closed.time_s, time_s * (1 + 1e-9));
    EXPECT_NEAR(closed.time_s - closed.latency_s, time_s - 2 * static_cast<double>(n - 1) * 1e-6,
                1e-9 * time_s);
  }
}

TEST(Rings, MoreBandwidthIsNeverSlowerAndRelabellingNodesChangesNothing) {
  std::mt19937_64 random(11);
  for (int trial = 0; trial < 300; ++trial) {
    const System system = mixed();
    std::vector<std::int64_t> all(16);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
    std::shuffle(all.begin(), all.end(), random);
    const auto cut = all.begin() + static_cast<std::ptrdiff_t>(1 + random() % 15);
    const std::vector<std::vector<std::int64_t>> rings = {{all.begin(), cut}, {cut, all.end()}};
    const std::vector<double> times = ring_all_reduce_s(system, rings, 1e8);
    System faster = system;
    faster.groups[0].node_bytes_per_s *= 1.5;
    faster.groups[1].intra_node.bytes_per_s *= 1.5;
    const std::vector<double> shorter = ring_all_reduce_s(faster, rings, 1e8);
    // Nodes 0 and 2 of the first group change places.
    std::vector<std::vector<std::int64_t>> relabelled = rings;
    for (auto& ring : relabelled) {
      for (std::int64_t& device : ring) {
        device = device < 4 ? device + 8 : device >= 8 && device < 12 ? device - 8 : device;
      }
    }
    const std::vector<double> same = ring_all_reduce_s(system, relabelled, 1e8);
    for (std::size_t r = 0; r < rings.size(); ++r) {
      EXPECT_LE(shorter[r], times[r] * (1 + 1e-12));
      EXPECT_NEAR(same[r], times[r], 1e-12 * times[r]);
      // Alone, a ring is not slower.
      EXPECT_LE(ring_all_reduce_s(system, rings[r], 1e8), times[r] * (1 + 1e-12));
    }
  }
}

TEST(Messages, ConcurrentFlowsDivideTheUplink) {
  const System system = mixed();
  EXPECT_NEAR(message_s(system, 0, 4, 1e9), 1e-5 + 1, 1e-12);
  EXPECT_NEAR(message_s(system, 0, 4, 1e9, 4), 1e-5 + 4, 1e-12);
  EXPECT_NEAR(message_s(system, 0, 3, 20e9, 4), 1e-6 + 1, 1e-12);
  EXPECT_EQ(message_s(system, 5, 5, 1e9), 0);
  EXPECT_EQ(message_s(system, 0, 4, 0), 0);
}

TEST(TorusShape, IsAProductNearToACube) {
  EXPECT_EQ(torus_shape(64, 3), (std::vector<std::int64_t>{4, 4, 4}));
  EXPECT_EQ(torus_shape(8960, 3), (std::vector<std::int64_t>{16, 20, 28}));
  EXPECT_EQ(torus_shape(256, 2), (std::vector<std::int64_t>{16, 16}));
  EXPECT_EQ(torus_shape(7, 3), (std::vector<std::int64_t>{1, 1, 7}));
  EXPECT_EQ(torus_shape(1, 2), (std::vector<std::int64_t>{1, 1}));
  for (std::int64_t units = 1; units < 3000; ++units) {
    for (std::size_t dimensions = 1; dimensions <= 4; ++dimensions) {
      std::int64_t product = 1;
      for (const std::int64_t size : torus_shape(units, dimensions)) product *= size;
      ASSERT_EQ(product, units);
    }
  }
}

}  // namespace
}  // namespace braid
