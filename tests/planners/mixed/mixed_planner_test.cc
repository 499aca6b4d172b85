#include "braid/planners/mixed/mixed_planner.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/base/infinity.h"
#include "braid/planners/job/by_kind.h"
#include "braid/planners/mixed/bounds.h"
#include "braid/planners/mixed/depth_first.h"
#include "braid/planners/registry.h"
#include "braid/planners/uniform/uniform_planner.h"
#include "braid/profile/layer_profile.h"
#include "braid/verify/verify.h"

#include "planners/all_pipelines.h"
#include "planners/tiny_mixed_job.h"
#include "planners/two_kinds.h"

namespace braid {
namespace {

using test::AllPipelines;
using test::pick;
using test::tiny_graph;
using test::tiny_system;
using test::TinyMixedJob;
using test::two_kinds;

void expect_verified(const Outcome& outcome) {
  for (const Candidate& candidate : outcome.candidates) {
    for (const Check& check : verify(candidate.plan).checks) {
      EXPECT_TRUE(check.holds) << check.name << ": " << check.detail;
    }
  }
}

TEST(AllPipelines, CostWhatTheirPlansCost) {
  std::int64_t seen = 0;
  for (std::uint64_t seed = 0; seed < 16; ++seed) {
    const TinyMixedJob tiny(seed);
    MixedJob costs(tiny.job, tiny.system, "test");
    AllPipelines all(tiny.job, tiny.system, tiny.space);
    std::int64_t number = 0;
    double least_s = kInfinity;
    all.for_each([&](std::span<const PlacedStage> stages, double time_s) {
      least_s = std::min(least_s, time_s);
      if (++number % 23 != 1) return;
      ++seen;
      EXPECT_DOUBLE_EQ(time_s, costs.time_s(stages)) << seed;
      EXPECT_LE(costs.missing_bytes(stages), 0) << seed;
    });
    EXPECT_EQ(number, all.simulated());
    EXPECT_EQ(AllPipelines(tiny.job, tiny.system, tiny.space).least_s(), least_s) << seed;
  }
  EXPECT_GT(seen, 50);
}

/// Families of all numbers of samples a round.
std::vector<std::unique_ptr<MixedFamily>> families_of(MixedJob& costs, const SpaceOptions& space,
                                                      MixedFamily::Known& known) {
  const auto layers = static_cast<std::int32_t>(costs.chain().kind_of_layer.size());
  std::vector<MixedFamily::Depth> kinds = {{MixedFamily::Stages::any, 1, layers}};
  if (!costs.chain().shared.empty()) {
    kinds = {{MixedFamily::Stages::one, 1, 1}, {MixedFamily::Stages::several, 2, layers}};
  }
  std::vector<std::unique_ptr<MixedFamily>> families;
  for (std::int64_t round = 1; round <= costs.job().global_batch; ++round) {
    if (costs.job().global_batch % round != 0) continue;
    for (const MixedFamily::Depth depth : kinds) {
      families.push_back(std::make_unique<MixedFamily>(costs, space, round, depth, known));
      if (families.back()->empty()) families.pop_back();
    }
  }
  return families;
}

TEST(MixedDepthFirst, ShowsEveryPipelineAndNoneTakesLessThanItsBound) {
  std::int64_t shown = 0, tight = 0, branched = 0;
  for (std::uint64_t seed = 100; seed < 140; ++seed) {
    const TinyMixedJob tiny(seed);
    MixedJob costs(tiny.job, tiny.system, "test");
    MixedFamily::Known known(tiny.system, costs.runs());
    std::int64_t number = 0;
    for (const auto& family : families_of(costs, tiny.space, known)) {
      const double quick_s = quick_bound_s(family->problem());
      constexpr std::int64_t kAll = std::int64_t{1} << 40;
      const MixedDepthFirstResult result = search_depth_first(
          family->problem(), kInfinity, {kAll, kAll}, [&](const MixedPipeline& pipeline) {
            ++number;
            const double time_s = costs.time_s(family->stages(pipeline));
            EXPECT_LE(pipeline.bound_s(), time_s * (1 + 1e-9)) << seed;
            EXPECT_LE(quick_s, time_s * (1 + 1e-9)) << seed;
            tight += pipeline.bound_s() > 0.99 * time_s ? 1 : 0;
            return kInfinity;
          });
      EXPECT_EQ(result.bound_s, kInfinity);
    }
    AllPipelines all(tiny.job, tiny.system, tiny.space);
    all.for_each([](std::span<const PlacedStage>, double) {});
    ASSERT_EQ(number, all.simulated()) << seed;
    shown += number;
    if (costs.chain().branched) branched += number;
  }
  EXPECT_GT(shown, 2000);
  EXPECT_GT(branched, shown / 10);
  EXPECT_GT(tight, shown / 2);
}

/// As many random jobs in all shards as BRAID_TINY_JOBS says. With 10,000 they take half a minute
/// in an optimised build.
std::uint64_t jobs_of_a_shard(std::uint64_t shards) {
  const char* jobs = std::getenv("BRAID_TINY_JOBS");
  return (jobs == nullptr ? 300 : std::strtoull(jobs, nullptr, 10)) / shards;
}

class MixedPlans : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(MixedPlans, AreTheBestOfAllPipelines) {
  const std::uint64_t jobs = jobs_of_a_shard(5);
  std::uint64_t found = 0, proven = 0, none = 0;
  for (std::uint64_t seed = jobs * GetParam(); seed < jobs * (GetParam() + 1); ++seed) {
    const TinyMixedJob tiny(seed);
    const Outcome outcome = plan_mixed(tiny.job, tiny.system, tiny.space, {}, {});
    const double expected_s = AllPipelines(tiny.job, tiny.system, tiny.space).least_s();
    if (expected_s == kInfinity) {
      EXPECT_EQ(outcome.status, Status::infeasible) << seed;
      ++none;
      continue;
    }
    ASSERT_FALSE(outcome.candidates.empty()) << seed;
    ++found;
    const double time_s = outcome.candidates.front().metrics.iteration_time_s;
    EXPECT_GE(time_s, expected_s * (1 - 1e-9)) << seed;
    EXPECT_LE(time_s, expected_s * (1 + 1e-9)) << seed;
    EXPECT_LE(outcome.search_bound_s, expected_s * (1 + 1e-9)) << seed;
    EXPECT_LE(outcome.physical_bound.time_s, expected_s) << seed;
    proven += outcome.status == Status::optimal ? 1 : 0;
    if (seed % 10 == 0) expect_verified(outcome);
  }
  RecordProperty("found", static_cast<int>(found));
  RecordProperty("proven", static_cast<int>(proven));
  EXPECT_GT(found, jobs * 2 / 3);
  EXPECT_EQ(proven, found);
  EXPECT_GT(none, 0U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, MixedPlans, ::testing::Range<std::uint64_t>(0, 5));

// Stages may divide layers as was found on their own kind of device.
TEST(MixedPlanner, AutoShardingsAreTheBestOfAllPipelines) {
  int found = 0, better = 0, sharded = 0;
  for (std::uint64_t seed = 5000; seed < 5020; ++seed) {
    TinyMixedJob tiny(seed);
    const double written_s = AllPipelines(tiny.job, tiny.system, tiny.space).least_s();
    tiny.job.sharding = ShardingSource::automatic;
    const double expected_s = AllPipelines(tiny.job, tiny.system, tiny.space).least_s();
    EXPECT_LE(expected_s, written_s) << seed;
    const Outcome outcome = plan_mixed(tiny.job, tiny.system, tiny.space, {}, {});
    if (expected_s == kInfinity) {
      EXPECT_EQ(outcome.status, Status::infeasible) << seed;
      continue;
    }
    ASSERT_FALSE(outcome.candidates.empty()) << seed;
    ++found;
    const Candidate& candidate = outcome.candidates.front();
    EXPECT_NEAR(candidate.metrics.iteration_time_s, expected_s, 1e-9 * expected_s) << seed;
    EXPECT_EQ(outcome.status, Status::optimal) << seed;
    EXPECT_LE(outcome.physical_bound.time_s, expected_s) << seed;
    expect_verified(outcome);
    better += expected_s < 0.999 * written_s ? 1 : 0;
    bool any = false;
    for (const auto& kind : candidate.plan.profile.kinds) {
      for (const Option& option : kind) any = any || !option.sharded.empty();
    }
    sharded += any ? 1 : 0;
  }
  EXPECT_GT(found, 10);
  EXPECT_GT(better, 0);
  EXPECT_GE(sharded, better);
}

TEST(MixedPlanner, TwoEqualGroupsAreOne) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    std::mt19937_64 random(seed);
    const Graph graph = tiny_graph(random, 5);
    System one = tiny_system(random, 4, 1e9);
    if (one.groups.front().nodes < 2) continue;
    System two = one;
    two.groups.front().nodes = 1;
    two.groups.push_back(two.groups.front());
    Job job;
    job.graph = &graph;
    job.global_batch = 8;
    const Outcome expected = plan_braid(job, one, {}, {});
    const Outcome outcome = plan_braid(job, two, {}, {});
    ASSERT_EQ(outcome.candidates.size(), expected.candidates.size());
    EXPECT_EQ(outcome.objective, expected.objective);
    EXPECT_EQ(outcome.candidates.front().plan.parallel, expected.candidates.front().plan.parallel);
  }
}

/// Parameters that the devices of a plan without tensor parallelism hold, each stage's copies.
double parameters_of(const Plan& plan) {
  double parameters = 0;
  for (const Stage& stage : plan.stages) {
    for (const Chunk& chunk : stage.chunks) {
      for (std::size_t i = 0; i < chunk.layers.size(); ++i) {
        const auto option = static_cast<std::size_t>(chunk.options[i]);
        const LayerCost& cost = options_of(plan.profile, chunk.layers[i])[option].cost;
        parameters += cost.dense_parameters + cost.expert_parameters;
      }
    }
  }
  return parameters;
}

TEST(MixedPlanner, AnOnlyStageHasOneCopyOfWhatItsEndsShare) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    std::mt19937_64 random(seed);
    Graph graph = tiny_graph(random, 4);
    test::tie_layers(graph, 0, graph.layers.size() - 1);
    System system = two_kinds(random, 2, 2, 1e9);
    Job job;
    job.graph = &graph;
    job.global_batch = 4;
    SpaceOptions space;
    space.tp = 1;
    space.cp = 1;
    space.pp = 1;
    space.allow_offload = false;
    const auto once = static_cast<double>(parameter_count(graph));
    const Outcome alone = plan_mixed(job, system, space, {}, {});
    ASSERT_FALSE(alone.candidates.empty()) << seed;
    EXPECT_DOUBLE_EQ(parameters_of(alone.candidates.front().plan), once) << seed;
    expect_verified(alone);
    const Outcome rule = plan_for_slowest({plan_megatron, "megatron"}, job, system, space, {}, {});
    ASSERT_FALSE(rule.candidates.empty()) << seed;
    EXPECT_DOUBLE_EQ(parameters_of(rule.candidates.front().plan), once) << seed;
    expect_verified(rule);

    space.pp = 2;
    const Outcome two = plan_mixed(job, system, space, {}, {});
    ASSERT_FALSE(two.candidates.empty()) << seed;
    const auto shared = shared_parameters(graph);
    ASSERT_EQ(shared.size(), 1U);
    EXPECT_DOUBLE_EQ(parameters_of(two.candidates.front().plan), once + shared[0].elements) << seed;

    // Memory for one copy is enough: of what a device holds at the least, no byte more.
    space.pp = 1;
    space.recompute = Recompute::full;
    space.zero = Zero::none;
    space.micro_batch = 1;
    const Outcome least = plan_mixed(job, system, space, {}, {});
    ASSERT_FALSE(least.candidates.empty()) << seed;
    for (DeviceGroup& group : system.groups) {
      group.chip.reserved_bytes =
          group.chip.memory.bytes - least.candidates.front().metrics.peak_memory_bytes;
    }
    EXPECT_FALSE(plan_mixed(job, system, space, {}, {}).candidates.empty()) << seed;
    for (DeviceGroup& group : system.groups) group.chip.reserved_bytes += 1;
    const Outcome short_of_one = plan_mixed(job, system, space, {}, {});
    EXPECT_EQ(short_of_one.status, Status::infeasible) << seed;
    ASSERT_TRUE(short_of_one.infeasibility.has_value()) << seed;
    EXPECT_EQ(short_of_one.infeasibility->needed_bytes,
              least.candidates.front().metrics.peak_memory_bytes)
        << seed;
  }
}

double time_of(const Job& job, const System& system, const SpaceOptions& space) {
  const Outcome outcome = plan_mixed(job, system, space, {}, {});
  return outcome.candidates.empty() ? kInfinity : outcome.objective;
}

TEST(MixedPlanner, MoreAndBetterDevicesNeverHurt) {
  // The search may miss the best by a little where it does not prove it.
  constexpr double kMissed = 1.005;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    std::mt19937_64 random(seed);
    const Graph graph = tiny_graph(random, 4);
    const System system = two_kinds(random, 2, 2, pick(random, 0, 1) == 0 ? 3e6 : 1e9);
    Job job;
    job.graph = &graph;
    job.global_batch = 4;
    SpaceOptions space;
    space.zero = Zero::none;
    space.allow_offload = false;
    const double time_s = time_of(job, system, space);
    for (std::size_t g = 0; g < 2; ++g) {
      System more = system;
      ++more.groups[g].nodes;
      ++more.levels.front().size;
      more.device_count += more.groups[g].devices_per_node;
      EXPECT_LE(time_of(job, more, space), time_s * kMissed) << seed;
      System faster = system;
      Chip& chip = faster.groups[g].chip;
      for (PeakRate& peak : chip.peaks) peak.matmul_flops_per_s *= 2;
      chip.vector_flops_per_s *= 2;
      chip.memory.bytes_per_s *= 2;
      EXPECT_LE(time_of(job, faster, space), time_s * kMissed) << seed;
      System larger = system;
      larger.groups[g].chip.memory.bytes *= 2;
      EXPECT_LE(time_of(job, larger, space), time_s * kMissed) << seed;
    }
    System relabelled = system;
    std::swap(relabelled.groups[0], relabelled.groups[1]);
    const double relabelled_s = time_of(job, relabelled, space);
    EXPECT_LE(relabelled_s, time_s * kMissed) << seed;
    EXPECT_LE(time_s, relabelled_s * kMissed) << seed;
  }
}

TEST(MixedPlanner, LeavesASlowGroupUnused) {
  std::mt19937_64 random(3);
  const Graph graph = tiny_graph(random, 6);
  System system = two_kinds(random, 4, 2, 1e9);
  Chip& slow = system.groups[1].chip;
  slow.peaks.front().matmul_flops_per_s =
      system.groups[0].chip.peaks.front().matmul_flops_per_s / 1e4;
  slow.vector_flops_per_s /= 1e4;
  slow.memory.bytes_per_s = system.groups[0].chip.memory.bytes_per_s / 1e4;
  Job job;
  job.graph = &graph;
  job.global_batch = 8;
  const Outcome outcome = plan_mixed(job, system, {}, {}, {});
  ASSERT_FALSE(outcome.candidates.empty());
  for (const Stage& stage : outcome.candidates.front().plan.stages) {
    EXPECT_LT(stage.devices.back(), 4);
  }
}

TEST(MixedPlanner, ReadsBandwidthMatrices) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    std::mt19937_64 random(seed);
    const Graph graph = tiny_graph(random, 5);
    System system = two_kinds(random, 2, 2, 1e9);
    const auto n = static_cast<std::size_t>(system.device_count);
    system.levels.clear();
    for (std::size_t i = 0; i < n * n; ++i) {
      system.bandwidth_matrix.push_back(i % (n + 1) == 0 ? 0 : 1e6 * pick(random, 1, 50));
    }
    Job job;
    job.graph = &graph;
    job.global_batch = 4;
    const Outcome outcome = plan_braid(job, system, {}, {});
    ASSERT_FALSE(outcome.candidates.empty()) << seed;
    EXPECT_GE(outcome.objective, outcome.physical_bound.time_s);
    expect_verified(outcome);
    System faster = system;
    for (double& entry : faster.bandwidth_matrix) entry *= 2;
    EXPECT_LE(plan_braid(job, faster, {}, {}).objective, outcome.objective * 1.005) << seed;
  }
}

TEST(MixedPlanner, RefusesWhatItsSpaceLacks) {
  std::mt19937_64 random(5);
  const Graph graph = tiny_graph(random, 3);
  const System system = two_kinds(random, 2, 2, 1e9);
  Job job;
  job.graph = &graph;
  job.global_batch = 4;
  SpaceOptions space;
  space.vp = 2;
  EXPECT_THROW(plan_mixed(job, system, space, {}, {}), Error);
  space = {};
  space.schedule = ScheduleKind::gpipe;
  EXPECT_THROW(plan_mixed(job, system, space, {}, {}), Error);
  space = {};
  space.dp = 64;
  EXPECT_THROW(plan_mixed(job, system, space, {}, {}), Error);
  space = {};
  space.pp = 4;
  EXPECT_THROW(plan_mixed(job, system, space, {}, {}), Error);
  space = {};
  space.pp = 3;
  const Outcome outcome = plan_mixed(job, system, space, {}, {});
  ASSERT_FALSE(outcome.candidates.empty());
  EXPECT_EQ(outcome.candidates.front().plan.stages.size(), 3U);
}

}  // namespace
}  // namespace braid
