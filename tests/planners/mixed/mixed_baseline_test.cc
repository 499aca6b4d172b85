#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/planners/job/by_kind.h"
#include "braid/planners/registry.h"
#include "braid/planners/uniform/uniform_planner.h"
#include "braid/schedule/timeline.h"
#include "braid/system/links.h"
#include "braid/verify/verify.h"

#include "planners/tiny_job.h"

namespace braid {
namespace {

using test::pick;
using test::tiny_graph;
using test::tiny_system;

/// Two kinds of nodes of two devices each on one switch; a job on them.
struct MixedCase {
  explicit MixedCase(std::uint64_t seed) : random(seed), graph(tiny_graph(random, 6)) {
    system = tiny_system(random, 2, 1e9);
    const System other = tiny_system(random, 2, 5e8);
    system.groups.push_back(other.groups.front());
    system.groups.back().chip.name = "other";
    for (DeviceGroup& group : system.groups) {
      group.devices_per_node = 2;
      group.nodes = 1;
    }
    NetworkLevel level;
    level.name = "network";
    level.size = 2;
    level.bytes_per_s = 1e6 * pick(random, 1, 100);
    level.unit_bytes_per_s = 2 * level.bytes_per_s;
    system.levels = {level};
    system.device_count = 4;
    job.graph = &graph;
    job.global_batch = 8;
  }
  MixedCase(const MixedCase&) = delete;
  MixedCase& operator=(const MixedCase&) = delete;
  MixedCase(MixedCase&&) = delete;
  MixedCase& operator=(MixedCase&&) = delete;
  ~MixedCase() = default;

  std::mt19937_64 random;
  Graph graph;
  System system;
  Job job;
};

TEST(SlowestOf, NoPartIsBetterThanAnywhere) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    MixedCase c(seed);
    c.system.groups[1].devices_per_node = pick(c.random, 1, 3);
    c.system.groups[1].nodes = 2;
    c.system.device_count = 2 + 2 * c.system.groups[1].devices_per_node;
    c.system.groups[0].node_bytes_per_s = 1e6 * pick(c.random, 1, 50);
    const System slow = slowest_of(c.system);
    ASSERT_TRUE(is_homogeneous(slow));
    EXPECT_EQ(slow.device_count, c.system.device_count);
    const Chip& chip = slow.groups.front().chip;
    for (const DeviceGroup& group : c.system.groups) {
      EXPECT_EQ(group.devices_per_node % slow.groups.front().devices_per_node, 0);
      EXPECT_LE(*matmul_peak(chip, Dtype::bf16), *matmul_peak(group.chip, Dtype::bf16));
      EXPECT_LE(chip.vector_flops_per_s, group.chip.vector_flops_per_s);
      EXPECT_LE(chip.memory.bytes_per_s, group.chip.memory.bytes_per_s);
      EXPECT_LE(usable_bytes(chip), usable_bytes(group.chip));
      EXPECT_GE(chip.efficiency.kernel_launch_s, group.chip.efficiency.kernel_launch_s);
    }
    // Any two devices are at least as far apart as those they stand for.
    for (std::int64_t a = 0; a < slow.device_count; ++a) {
      for (std::int64_t b = 0; b < slow.device_count; ++b) {
        if (a == b) continue;
        EXPECT_LE(link_bytes_per_s(slow, a, b), link_bytes_per_s(c.system, a, b) * (1 + 1e-12))
            << seed << " " << a << " " << b;
      }
    }
  }
}

TEST(PlanForSlowest, TimesThePlanOnTheRealDevices) {
  int feasible = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const MixedCase c(seed);
    const Outcome slow = plan_megatron(c.job, slowest_of(c.system), {}, {});
    const Outcome real = plan_for_slowest({plan_megatron, "megatron"}, c.job, c.system, {}, {}, {});
    ASSERT_EQ(slow.candidates.empty(), real.candidates.empty()) << seed;
    if (real.candidates.empty()) continue;
    ++feasible;
    const Candidate& best = real.candidates.front();
    EXPECT_EQ(best.plan.system, c.system);
    EXPECT_EQ(best.metrics.iteration_time_s, measure(best.plan).iteration_time_s) << seed;
    const Plan& planned = slow.candidates.front().plan;
    ASSERT_EQ(best.plan.stages.size(), planned.stages.size()) << seed;
    for (std::size_t s = 0; s < planned.stages.size(); ++s) {
      EXPECT_EQ(best.plan.stages[s].devices, planned.stages[s].devices) << seed;
      EXPECT_EQ(best.plan.stages[s].chunks[0].layers, planned.stages[s].chunks[0].layers) << seed;
    }
    EXPECT_GE(best.metrics.iteration_time_s, real.physical_bound.time_s) << seed;
    EXPECT_TRUE(
        std::any_of(real.assumptions.begin(), real.assumptions.end(), [](const std::string& line) {
          return line.find("megatron planner takes every device") != std::string::npos;
        }));
    for (const Check& check : verify(best.plan).checks) {
      EXPECT_TRUE(check.holds) << check.name << ": " << check.detail;
    }
  }
  EXPECT_GT(feasible, 10);
}

TEST(PlanForSlowest, LeavesOutDevicesWithoutThePrecision) {
  MixedCase c(1);
  c.system.groups[1].chip.peaks = {{Dtype::f16, 1e12}};
  const Outcome outcome =
      plan_for_slowest({plan_megatron, "megatron"}, c.job, c.system, {}, {}, {});
  ASSERT_FALSE(outcome.candidates.empty());
  EXPECT_EQ(outcome.candidates.front().plan.system.device_count, 2);
  EXPECT_THAT(outcome.assumptions.back(), ::testing::HasSubstr("2 devices are left out"));
  c.system.groups[0].chip.peaks = {{Dtype::f16, 1e12}};
  EXPECT_THROW(plan_for_slowest({plan_megatron, "megatron"}, c.job, c.system, {}, {}, {}), Error);
}

TEST(PlanBraid, LeavesOutDevicesWithoutThePrecision) {
  MixedCase c(2);
  const System suffix = [&] {
    System system = c.system;
    system.groups.pop_back();
    system.device_count = 2;
    system.levels.front().size = 1;
    return system;
  }();
  c.system.groups[1].chip.peaks = {{Dtype::f16, 1e12}};
  const Outcome outcome = plan_braid(c.job, c.system, {}, {});
  const Outcome expected = plan_braid(c.job, suffix, {}, {});
  ASSERT_FALSE(outcome.candidates.empty());
  EXPECT_EQ(outcome.objective, expected.objective);
  EXPECT_EQ(outcome.candidates.front().plan.parallel, expected.candidates.front().plan.parallel);
  // A mixed system can be left.
  DeviceGroup third = c.system.groups[0];
  third.chip.name = "third";
  third.chip.vector_flops_per_s /= 2;
  c.system.groups.push_back(third);
  c.system.levels.front().size = 3;
  c.system.device_count = 6;
  const Outcome mixed = plan_braid(c.job, c.system, {}, {});
  ASSERT_FALSE(mixed.candidates.empty());
  EXPECT_EQ(mixed.candidates.front().plan.system.groups.size(), 2U);
  EXPECT_THAT(mixed.assumptions.back(), ::testing::HasSubstr("other"));
}

TEST(PlanBraid, SaysWhichStageOfAMixedClusterLacksHowMany) {
  MixedCase c(3);
  for (DeviceGroup& group : c.system.groups) {
    group.chip.memory.bytes = 1000;
    group.chip.host.reset();
  }
  const Outcome outcome = plan_braid(c.job, c.system, {}, {});
  EXPECT_EQ(outcome.status, Status::infeasible);
  ASSERT_TRUE(outcome.infeasibility.has_value());
  EXPECT_GE(outcome.infeasibility->stage, 0);
  EXPECT_GT(outcome.infeasibility->needed_bytes, outcome.infeasibility->available_bytes);
  EXPECT_GT(outcome.infeasibility->available_bytes, 0);
  // With a little less than that there is still nothing, with that there is.
  const double more = outcome.infeasibility->needed_bytes - outcome.infeasibility->available_bytes;
  for (const double share : {0.99, 1.0}) {
    System larger = c.system;
    for (DeviceGroup& group : larger.groups) group.chip.memory.bytes += std::ceil(share * more);
    EXPECT_EQ(plan_braid(c.job, larger, {}, {}).candidates.empty(), share < 1) << share;
  }
}

}  // namespace
}  // namespace braid
