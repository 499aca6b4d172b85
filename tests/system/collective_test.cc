#include "braid/system/collective.h"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace braid {
namespace {

NetworkLevel level(Topology topology, std::int64_t size, double bytes_per_s,
                   double unit_bytes_per_s, double latency_s) {
  NetworkLevel made;
  made.name = "level";
  made.topology = topology;
  made.size = size;
  made.bytes_per_s = bytes_per_s;
  made.unit_bytes_per_s = unit_bytes_per_s;
  made.latency_s = latency_s;
  made.efficiency = 1;
  return made;
}

/// `nodes` of `devices` with a switch or ring inside and a switch between.
System two_levels(Topology inside, std::int64_t devices, std::int64_t nodes,
                  double inner_bytes_per_s, double device_bytes_per_s, double latency_s) {
  System system;
  system.name = "test";
  DeviceGroup group;
  group.chip.name = "test";
  group.devices_per_node = devices;
  group.nodes = nodes;
  group.intra_node = level(inside, devices, inner_bytes_per_s, inner_bytes_per_s, latency_s);
  system.groups = {group};
  if (nodes > 1) {
    NetworkLevel outer = level(Topology::switched, nodes, device_bytes_per_s,
                               device_bytes_per_s * static_cast<double>(devices), 2 * latency_s);
    outer.rails = static_cast<int>(devices);
    system.levels = {outer};
  }
  system.device_count = devices * nodes;
  return system;
}

System random_system(std::mt19937_64& random) {
  const auto pick = [&](int least, int most) {
    return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
  };
  const Topology topologies[] = {Topology::ring, Topology::fully_connected, Topology::switched,
                                 Topology::torus, Topology::dragonfly};
  System system = two_levels(topologies[pick(0, 4)], pick(1, 8), pick(1, 16), 1e9 * pick(1, 500),
                             1e9 * pick(1, 50), 1e-6 * pick(0, 10));
  system.groups[0].intra_node.efficiency = 0.1 * pick(1, 10);
  system.groups[0].intra_node.half_bytes = 1e3 * pick(0, 1000);
  for (NetworkLevel& outer : system.levels) {
    outer.oversubscription = pick(1, 4);
    outer.efficiency = 0.1 * pick(1, 10);
    outer.half_bytes = 1e3 * pick(0, 1000);
  }
  return system;
}

constexpr Collective kAll[] = {Collective::all_reduce, Collective::reduce_scatter,
                               Collective::all_gather, Collective::all_to_all,
                               Collective::broadcast,  Collective::point_to_point};

GroupSpan random_span(std::mt19937_64& random, const System& system) {
  std::vector<std::int64_t> strides;
  for (std::int64_t d = 1; d <= system.device_count; ++d) {
    if (system.device_count % d == 0) strides.push_back(d);
  }
  const std::int64_t stride = strides[random() % strides.size()];
  const std::int64_t most = system.device_count / stride;
  std::vector<std::int64_t> sizes;
  for (std::int64_t s = 1; s <= most; ++s) {
    if (most % s == 0) sizes.push_back(s);
  }
  return span_of(system, 0, stride, sizes[random() % sizes.size()]);
}

/// Messages around a ring, one step after another: each device passes on a block in every step.
double ring_all_reduce_by_steps(std::int64_t n, double bytes, double bytes_per_s,
                                double latency_s) {
  std::vector<double> free_at(static_cast<std::size_t>(n), 0.0);
  const double block = bytes / static_cast<double>(n);
  for (std::int64_t step = 0; step < 2 * (n - 1); ++step) {
    std::vector<double> next(free_at.size());
    for (std::size_t d = 0; d < free_at.size(); ++d) {
      const std::size_t left = (d + free_at.size() - 1) % free_at.size();
      next[d] = std::max(free_at[d], free_at[left]) + latency_s + block / bytes_per_s;
    }
    free_at = next;
  }
  return *std::max_element(free_at.begin(), free_at.end());
}

TEST(AllReduce, RingEqualsAStepByStepReplay) {
  for (std::int64_t n = 2; n <= 8; ++n) {
    const System system = two_levels(Topology::ring, n, 1, 1e9, 1e9, 1e-6);
    const GroupSpan span = span_of(system, 0, 1, n);
    const CollectiveTime time = collective_time(Collective::all_reduce, 1e8, span, system);
    EXPECT_EQ(time.algorithm, CollectiveAlgorithm::ring);
    EXPECT_NEAR(time.time_s, ring_all_reduce_by_steps(n, 1e8, 1e9, 1e-6), 1e-12);
    // Thakur et al. 2005: 2(n - 1)·α + 2(n - 1)/n·S/B.
    const auto m = static_cast<double>(n);
    EXPECT_NEAR(time.time_s, 2 * (m - 1) * 1e-6 + 2 * (m - 1) / m * 0.1, 1e-12);
  }
}

TEST(AllReduce, SmallMessagesTakeTheTree) {
  const System system = two_levels(Topology::ring, 64, 1, 1e9, 1e9, 1e-5);
  const CollectiveTime time =
      collective_time(Collective::all_reduce, 1e3, span_of(system, 0, 1, 64), system);
  EXPECT_EQ(time.algorithm, CollectiveAlgorithm::tree);
  EXPECT_NEAR(time.latency_s, 2 * 6 * 1e-5, 1e-12);
}

TEST(AllReduce, HierarchyUsesTheFastLinksInside) {
  // Eight devices a node at 100 GB/s, 1 GB/s a device between nodes: the tensor crosses once per
  // node over eight rails, not over one device's link.
  const System system = two_levels(Topology::switched, 8, 4, 1e11, 1e9, 0);
  const GroupSpan span = span_of(system, 0, 1, 32);
  EXPECT_EQ(span.members, (std::vector<std::int64_t>{8, 4}));
  const CollectiveTime time = collective_time(Collective::all_reduce, 8e9, span, system);
  EXPECT_EQ(time.algorithm, CollectiveAlgorithm::hierarchical);
  EXPECT_NEAR(time.time_s, 2 * 7.0 / 8 * 8e9 / 1e11 + 2 * 3.0 / 4 * 8e9 / 8e9, 1e-9);
}

TEST(Span, StridesAndSharing) {
  const System system = two_levels(Topology::switched, 8, 4, 1e11, 1e9, 0);
  EXPECT_EQ(span_of(system, 0, 1, 8).members, (std::vector<std::int64_t>{8, 1}));
  EXPECT_EQ(span_of(system, 0, 8, 4).members, (std::vector<std::int64_t>{1, 4}));
  EXPECT_EQ(span_of(system, 0, 8, 4).sharing[1], 8);
  EXPECT_EQ(span_of(system, 0, 4, 8).members, (std::vector<std::int64_t>{2, 4}));
  EXPECT_EQ(span_of(system, 0, 4, 8).sharing[1], 4);
  EXPECT_EQ(span_of(system, 0, 1, 1).members, (std::vector<std::int64_t>{1, 1}));
}

TEST(Laws, NeverBelowTheBound) {
  std::mt19937_64 random(12);
  for (int trial = 0; trial < 12000; ++trial) {
    const System system = random_system(random);
    const GroupSpan span = random_span(random, system);
    const double bytes = 1e3 * static_cast<double>(1 + random() % 10000000);
    for (const Collective collective : kAll) {
      const double time_s = collective_time(collective, bytes, span, system).time_s;
      ASSERT_GE(time_s * (1 + 1e-9), collective_bound_s(collective, bytes, span, system))
          << name_of(collective) << " trial " << trial;
    }
  }
}

TEST(Laws, MoreBytesTakeLongerMoreBandwidthShorter) {
  std::mt19937_64 random(34);
  for (int trial = 0; trial < 4000; ++trial) {
    const System system = random_system(random);
    const GroupSpan span = random_span(random, system);
    const double bytes = 1e3 * static_cast<double>(1 + random() % 10000000);
    System faster = system;
    faster.groups[0].intra_node.bytes_per_s *= 2;
    faster.groups[0].intra_node.unit_bytes_per_s *= 2;
    for (NetworkLevel& outer : faster.levels) {
      outer.bytes_per_s *= 2;
      outer.unit_bytes_per_s *= 2;
    }
    System slower = system;
    slower.groups[0].intra_node.latency_s += 1e-6;
    for (NetworkLevel& outer : slower.levels) outer.latency_s += 1e-6;
    for (const Collective collective : kAll) {
      const double time_s = collective_time(collective, bytes, span, system).time_s;
      EXPECT_LE(time_s, collective_time(collective, 2 * bytes, span, system).time_s * (1 + 1e-12));
      EXPECT_GE(time_s, collective_time(collective, bytes, span, faster).time_s * (1 - 1e-12));
      EXPECT_LE(time_s, collective_time(collective, bytes, span, slower).time_s * (1 + 1e-12));
    }
  }
}

TEST(Laws, ScalingBytesAndBandwidthTogetherChangesNothing) {
  std::mt19937_64 random(56);
  for (int trial = 0; trial < 2000; ++trial) {
    System system = random_system(random);
    system.groups[0].intra_node.latency_s = system.groups[0].intra_node.half_bytes = 0;
    for (NetworkLevel& outer : system.levels) outer.latency_s = outer.half_bytes = 0;
    const GroupSpan span = random_span(random, system);
    System scaled = system;
    scaled.groups[0].intra_node.bytes_per_s *= 3;
    scaled.groups[0].intra_node.unit_bytes_per_s *= 3;
    for (NetworkLevel& outer : scaled.levels) {
      outer.bytes_per_s *= 3;
      outer.unit_bytes_per_s *= 3;
    }
    for (const Collective collective : kAll) {
      const double time_s = collective_time(collective, 1e6, span, system).time_s;
      EXPECT_NEAR(collective_time(collective, 3e6, span, scaled).time_s, time_s, 1e-9 * time_s);
    }
  }
}

TEST(Laws, OneDeviceAndNoBytesAreFree) {
  const System system = two_levels(Topology::switched, 8, 4, 1e11, 1e9, 1e-6);
  for (const Collective collective : kAll) {
    EXPECT_EQ(collective_time(collective, 1e6, span_of(system, 0, 1, 1), system).time_s, 0);
    EXPECT_EQ(collective_time(collective, 0, span_of(system, 0, 1, 8), system).time_s, 0);
  }
}

TEST(PointToPoint, CrossesTheLevelBetweenItsEnds) {
  const System system = two_levels(Topology::switched, 8, 4, 1e11, 1e9, 0);
  EXPECT_EQ(point_to_point_s(system, 3, 3, 1e9, 1), 0);
  EXPECT_NEAR(point_to_point_s(system, 0, 7, 1e9, 1), 1e9 / 1e11, 1e-12);
  EXPECT_NEAR(point_to_point_s(system, 7, 8, 1e9, 8), 1.0, 1e-12);
  // Alone, a flow still has but one rail.
  EXPECT_NEAR(point_to_point_s(system, 7, 8, 1e9, 1), 1.0, 1e-12);
}

}  // namespace
}  // namespace braid
