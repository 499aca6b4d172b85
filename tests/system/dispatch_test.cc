#include "braid/system/dispatch.h"

#include <algorithm>
#include <bit>
#include <random>

#include <gtest/gtest.h>

#include "system/network_level.h"

namespace braid {
namespace {

using test::level;

System switched(std::int64_t devices, std::int64_t nodes, double inner, double outer) {
  System system;
  system.name = "test";
  DeviceGroup group;
  group.chip.name = "test";
  group.devices_per_node = devices;
  group.nodes = nodes;
  group.intra_node = level(Topology::switched, devices, inner, inner, 1e-6);
  system.groups = {group};
  if (nodes > 1) {
    system.levels = {
        level(Topology::switched, nodes, outer, outer * static_cast<double>(devices), 2e-6)};
    system.levels[0].rails = static_cast<int>(devices);
  }
  system.device_count = devices * nodes;
  return system;
}

/// Mean over all sets of `chosen` of `targets` of how many of `units`, each with as many targets,
/// hold one.
double mean_units(int units, int targets, int chosen) {
  double sets = 0, reached = 0;
  for (unsigned set = 0; set < 1U << targets; ++set) {
    if (std::popcount(set) != chosen) continue;
    ++sets;
    unsigned hit = 0;
    for (int t = 0; t < targets; ++t) {
      if ((set >> t & 1U) != 0) hit |= 1U << (t / (targets / units));
    }
    reached += std::popcount(hit);
  }
  return reached / sets;
}

TEST(Dispatch, SendsOneCopyToEachUnitThatHoldsATarget) {
  constexpr double kBytes = 1e9, kInner = 1e11, kOuter = 1e10;
  const System system = switched(4, 2, kInner, kOuter);
  const GroupSpan span = span_of(system, 1, 8);
  for (const int targets : {8, 16}) {
    for (const int chosen : {1, 2, 3, 7, 8}) {
      // Between nodes: half of the nodes with a target are other ones. Inside: three of four
      // devices with a target are not the one where the copy came in.
      const double outer_s = kBytes * mean_units(2, targets, chosen) / 2 / kOuter;
      const double inner_s = kBytes * mean_units(8, targets, chosen) * 3 / 4 / kInner;
      EXPECT_NEAR(dispatch_time(kBytes, targets, chosen, span, system).time_s,
                  std::max(inner_s, outer_s) + 2e-6, 1e-9);
    }
  }
}

TEST(Dispatch, OfOneTargetIsAnAllToAllInsideANode) {
  const System system = switched(8, 1, 1e11, 0);
  const GroupSpan span = span_of(system, 1, 8);
  const double all_to_all_s = collective_time(Collective::all_to_all, 1e8, span, system).time_s;
  EXPECT_NEAR(dispatch_time(1e8, 64, 1, span, system).time_s, all_to_all_s, 1e-12);
  // Copies for targets on one device are sent once.
  EXPECT_LT(dispatch_time(1e8, 64, 8, span, system).time_s,
            collective_time(Collective::all_to_all, 8e8, span, system).time_s);
}

TEST(Dispatch, MoreBandwidthNeverHurtsAndMoreTargetsNeverHelp) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 300; ++i) {
    const double inner = 1e9 * static_cast<double>(1 + random() % 500);
    const double outer = 1e9 * static_cast<double>(1 + random() % 50);
    const System slow = switched(8, 4, inner, outer);
    const System fast = switched(8, 4, 1.5 * inner, 2 * outer);
    const std::int64_t size = std::int64_t{1} << random() % 6;
    const GroupSpan span = span_of(slow, 1, size);
    const auto chosen = static_cast<std::int64_t>(1 + random() % 31);
    const double time_s = dispatch_time(1e7, 32, chosen, span, slow).time_s;
    EXPECT_LE(dispatch_time(1e7, 32, chosen, span, fast).time_s, time_s);
    EXPECT_GE(dispatch_time(1e7, 32, chosen + 1, span, slow).time_s, time_s * (1 - 1e-12));
    if (size == 1) {
      EXPECT_EQ(time_s, 0);
    }
  }
}

}  // namespace
}  // namespace braid
