#include "braid/system/collective.h"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "braid/system/group_steps.h"
#include "braid/system/links.h"

#include "system/network_level.h"

namespace braid {
namespace {

using test::level;

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
  return span_of(system, stride, sizes[random() % sizes.size()]);
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
    const GroupSpan span = span_of(system, 1, n);
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
      collective_time(Collective::all_reduce, 1e3, span_of(system, 1, 64), system);
  EXPECT_EQ(time.algorithm, CollectiveAlgorithm::tree);
  EXPECT_NEAR(time.latency_s, 2 * 6 * 1e-5, 1e-12);
}

TEST(AllReduce, HierarchyUsesTheFastLinksInside) {
  // Eight devices a node at 100 GB/s, 1 GB/s a device between nodes: the tensor crosses once per
  // node over eight rails, not over one device's link.
  const System system = two_levels(Topology::switched, 8, 4, 1e11, 1e9, 0);
  const GroupSpan span = span_of(system, 1, 32);
  EXPECT_EQ(span.members, (std::vector<std::int64_t>{8, 4}));
  const CollectiveTime time = collective_time(Collective::all_reduce, 8e9, span, system);
  EXPECT_EQ(time.algorithm, CollectiveAlgorithm::hierarchical);
  EXPECT_NEAR(time.time_s, 2 * 7.0 / 8 * 8e9 / 1e11 + 2 * 3.0 / 4 * 8e9 / 8e9, 1e-9);
}

TEST(Span, StridesAndSharing) {
  const System system = two_levels(Topology::switched, 8, 4, 1e11, 1e9, 0);
  EXPECT_EQ(span_of(system, 1, 8).members, (std::vector<std::int64_t>{8, 1}));
  EXPECT_EQ(span_of(system, 8, 4).members, (std::vector<std::int64_t>{1, 4}));
  EXPECT_EQ(span_of(system, 8, 4).sharing[1], 8);
  EXPECT_EQ(span_of(system, 4, 8).members, (std::vector<std::int64_t>{2, 4}));
  EXPECT_EQ(span_of(system, 4, 8).sharing[1], 4);
  EXPECT_EQ(span_of(system, 1, 1).members, (std::vector<std::int64_t>{1, 1}));
}

/// A time that no algorithm can beat: each device's unavoidable bytes over its fastest link, and
/// the bytes that must cross each level's cut over that cut. Uses nominal bandwidth, no latency.
double collective_bound_s(Collective collective, double bytes, const GroupSpan& span,
                          const System& system) {
  const GroupSteps steps = steps_of(span, system);
  double bound_s = 0;
  double covered = 1;
  for (std::size_t i = 0; i < steps.count; ++i) {
    const LevelStep& step = steps.step[i];
    const double n = step.members;
    // A message may reach another unit without using the links inside its own.
    if (collective == Collective::point_to_point && i + 1 < steps.count) continue;
    // What a unit's members must together send out of (or take into) their unit.
    double crossing = bytes;
    if (collective == Collective::all_gather || collective == Collective::reduce_scatter) {
      crossing = bytes * (n - 1) / n;
    } else if (collective == Collective::all_to_all) {
      // What goes further than this level may take other links.
      crossing = bytes * covered * (n - 1) / steps.size * covered;
    }
    if (collective == Collective::all_reduce || collective == Collective::broadcast) {
      crossing = bytes / 2;
    }
    const double rate = i == 0 ? std::max(step.group_bandwidth, unit_bandwidth(*step.level))
                               : unit_bandwidth(*step.level);
    bound_s = std::max(bound_s, crossing / rate);
    covered *= n;
  }
  return bound_s;
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
    EXPECT_EQ(collective_time(collective, 1e6, span_of(system, 1, 1), system).time_s, 0);
    EXPECT_EQ(collective_time(collective, 0, span_of(system, 1, 8), system).time_s, 0);
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

/// A pod of dims x … chips whose links carry `link` bytes/s in each direction.
System torus(const std::vector<std::int64_t>& dims, double link) {
  std::int64_t chips = 1;
  double links = 0;
  for (const std::int64_t dim : dims) {
    chips *= dim;
    links += dim > 2 ? 2 : dim > 1 ? 1 : 0;
  }
  System system = two_levels(Topology::torus, chips, 1, link * links, 0, 0);
  system.groups[0].intra_node.torus_dims = dims;
  return system;
}

TEST(Torus, AWholePodUsesAllLinks) {
  // 4 x 4 x 4 with six links of 50 GB/s: all-reduce moves 2(n - 1)/n of the tensor over 300 GB/s.
  const System pod = torus({4, 4, 4}, 50e9);
  const GroupSpan all = span_of(pod, 1, 64);
  EXPECT_NEAR(collective_time(Collective::all_reduce, 3e9, all, pod).time_s,
              2 * 63.0 / 64 * 3e9 / 300e9, 1e-9);
  EXPECT_NEAR(collective_time(Collective::all_gather, 3e9, all, pod).time_s,
              63.0 / 64 * 3e9 / 300e9, 1e-9);
  // Half of what each sends crosses the middle: 32 chips x 1.5 GB over 2 x 16 links.
  EXPECT_NEAR(collective_time(Collective::all_to_all, 3e9, all, pod).time_s,
              32 * 1.5e9 / (32 * 50e9), 1e-9);
}

TEST(Torus, APartHasTheLinksOfTheDimensionsItReaches) {
  const System pod = torus({4, 4, 4}, 50e9);
  const auto all_gather = [&](std::int64_t size) {
    return collective_time(Collective::all_gather, 64e9, span_of(pod, 1, size), pod).time_s;
  };
  EXPECT_NEAR(all_gather(2), 32e9 / 50e9, 1e-9);    // one link of an open line
  EXPECT_NEAR(all_gather(4), 48e9 / 100e9, 1e-9);   // a closed ring, both directions
  EXPECT_NEAR(all_gather(16), 60e9 / 200e9, 1e-9);  // two dimensions
  EXPECT_NEAR(point_to_point_s(pod, 0, 1, 1e9, 1), 1e9 / 50e9, 1e-12);
}

TEST(Torus, LatencyIsThatOfOneRingForEachDimension) {
  System pod = torus({4, 4, 4}, 50e9);
  pod.groups[0].intra_node.latency_s = 1e-6;
  const CollectiveTime time = collective_time(Collective::all_gather, 64, span_of(pod, 1, 64), pod);
  EXPECT_NEAR(time.latency_s, 3 * 3e-6, 1e-15);
}

/// No algorithm moves more than the cut between two halves of the torus carries.
TEST(Torus, AllToAllIsNotFasterThanAnyCutAllows) {
  std::mt19937_64 random(78);
  for (int trial = 0; trial < 500; ++trial) {
    std::vector<std::int64_t> dims;
    double chips = 1;
    for (std::uint64_t d = 0; d <= random() % 3; ++d) {
      dims.push_back(1 << (random() % 4));
      chips *= static_cast<double>(dims.back());
    }
    if (chips < 2) continue;
    const System pod = torus(dims, 1e9);
    const GroupSpan all = span_of(pod, 1, static_cast<std::int64_t>(chips));
    const double time_s = collective_time(Collective::all_to_all, 1e9, all, pod).time_s;
    for (const std::int64_t dim : dims) {
      if (dim < 2) continue;
      // chips/2 on each side, each of which sends half of its bytes across.
      const double links = (dim > 2 ? 2 : 1) * chips / static_cast<double>(dim);
      EXPECT_GE(time_s * (1 + 1e-9), chips / 2 * 0.5e9 / (links * 1e9));
    }
    // Nor than its own links allow.
    EXPECT_GE(time_s * (1 + 1e-9),
              (chips - 1) / chips * 1e9 / pod.groups[0].intra_node.bytes_per_s);
  }
}

TEST(Mesh, APartHasTheLinksAmongItsMembers) {
  // Eight fully connected devices, seven links of 64 GB/s each.
  System mesh = two_levels(Topology::fully_connected, 8, 1, 448e9, 0, 0);
  const auto all_reduce = [&](std::int64_t size) {
    return collective_time(Collective::all_reduce, 64e9, span_of(mesh, 1, size), mesh).time_s;
  };
  EXPECT_NEAR(all_reduce(2), 64e9 / 64e9, 1e-9);
  EXPECT_NEAR(all_reduce(4), 2 * 0.75 * 64e9 / 192e9, 1e-9);
  EXPECT_NEAR(all_reduce(8), 2 * 0.875 * 64e9 / 448e9, 1e-9);
}

TEST(Dragonfly, ReachesEveryUnitDirectly) {
  System system = two_levels(Topology::switched, 4, 16, 100e9, 10e9, 1e-6);
  system.levels[0].topology = Topology::dragonfly;
  system.levels[0].oversubscription = 2;
  const GroupSpan span = span_of(system, 4, 16);  // One device a node.
  const CollectiveTime time = collective_time(Collective::all_gather, 16e9, span, system);
  EXPECT_EQ(time.algorithm, CollectiveAlgorithm::direct);
  EXPECT_NEAR(time.time_s, 2e-6 + 15e9 / 5e9, 1e-9);
}

TEST(MixedNodes, TheSlowestNodeDecides) {
  System system = two_levels(Topology::switched, 4, 4, 100e9, 10e9, 0);
  const GroupSpan all = span_of(system, 1, 16);
  const double equal_s = collective_time(Collective::all_reduce, 1e9, all, system).time_s;
  DeviceGroup slow = system.groups[0];
  system.groups[0].nodes = slow.nodes = 2;
  slow.intra_node.bytes_per_s = 25e9;
  slow.node_bytes_per_s = 8e9;
  system.groups.push_back(slow);
  const double mixed_s = collective_time(Collective::all_reduce, 1e9, all, system).time_s;
  EXPECT_GT(mixed_s, equal_s);
  EXPECT_NEAR(mixed_s, 2 * 0.75 * 1e9 / 25e9 + 2 * 0.75 * 1e9 / 8e9, 1e-9);
}

}  // namespace
}  // namespace braid
