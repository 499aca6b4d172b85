#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "braid/base/infinity.h"
#include "braid/plan/trainer_fit.h"
#include "braid/planners/mixed/mixed_planner.h"
#include "braid/system/part.h"
#include "braid/verify/verify.h"

#include "planners/all_pipelines.h"
#include "planners/tiny_mixed_job.h"

namespace braid {
namespace {

using test::AllPipelines;
using test::TinyMixedJob;

Configuration form_of(const PlacedStage& stage) {
  Configuration form = stage.config;
  form.pp = 1;
  form.num_micro_batches = 1;
  return form;
}

/// Ranks, one stage's after the other's, begin every node that they are on with its first device
/// and leave it after its last.
bool fills_nodes(const System& system, std::span<const PlacedStage> stages) {
  std::vector<std::int64_t> ranks;
  for (const PlacedStage& stage : stages) {
    ranks.insert(ranks.end(), stage.devices.begin(), stage.devices.end());
  }
  std::size_t next = 0;
  while (next < ranks.size()) {
    std::int64_t first = -1, size = 0;
    for (const DeviceRun& run : device_runs(system)) {
      const std::int64_t place = ranks[next] - run.first;
      if (place < 0 || place >= run.count) continue;
      first = run.first + place / run.devices_per_node * run.devices_per_node;
      size = run.devices_per_node;
    }
    for (std::int64_t d = 0; d < size; ++d, ++next) {
      if (next >= ranks.size() || ranks[next] != first + d) return false;
    }
  }
  return true;
}

/// Of all pipelines whose stages have one form and fill nodes, which are tried with every way to
/// save memory: a stage may have to save what it has room for.
double least_of_one_form_s(const TinyMixedJob& tiny) {
  double least_s = kInfinity;
  for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
    if (tiny.space.recompute.value_or(recompute) != recompute) continue;
    for (const Zero zero : {Zero::none, Zero::optimizer, Zero::gradients, Zero::parameters}) {
      if (tiny.space.zero.value_or(zero) != zero) continue;
      SpaceOptions one = tiny.space;
      one.recompute = recompute;
      one.zero = zero;
      AllPipelines(tiny.job, tiny.system, one)
          .for_each([&](std::span<const PlacedStage> stages, double time_s) {
            const bool same =
                std::all_of(stages.begin(), stages.end(), [&](const PlacedStage& stage) {
                  return form_of(stage) == form_of(stages.front());
                });
            if (same && fills_nodes(tiny.system, stages)) least_s = std::min(least_s, time_s);
          });
    }
  }
  return least_s;
}

TEST(OneFormPlans, AreTheBestOfAllPipelinesOfOneForm) {
  int found = 0, proven = 0, slower = 0, none = 0;
  for (std::uint64_t seed = 20'000; seed < 20'060; ++seed) {
    TinyMixedJob tiny(seed);
    const double any_s = AllPipelines(tiny.job, tiny.system, tiny.space).least_s();
    const double expected_s = least_of_one_form_s(tiny);
    tiny.space.can.heterogeneous_stages = false;
    const Outcome outcome = plan_mixed(tiny.job, tiny.system, tiny.space, {}, {});
    if (expected_s == kInfinity) {
      EXPECT_TRUE(outcome.candidates.empty()) << seed;
      ++none;
      continue;
    }
    ASSERT_FALSE(outcome.candidates.empty()) << seed;
    ++found;
    const Candidate& best = outcome.candidates.front();
    EXPECT_NEAR(best.metrics.iteration_time_s, expected_s, 1e-9 * expected_s) << seed;
    EXPECT_LE(outcome.search_bound_s, expected_s * (1 + 1e-9)) << seed;
    EXPECT_EQ(refusal(tiny.space.can, best.plan), "") << seed;
    for (const Check& check : verify(best.plan).checks) {
      EXPECT_TRUE(check.holds) << seed << " " << check.name << ": " << check.detail;
    }
    proven += outcome.status == Status::optimal ? 1 : 0;
    slower += any_s < 0.999 * expected_s ? 1 : 0;
  }
  EXPECT_GT(found, 40);
  EXPECT_EQ(proven, found);
  EXPECT_GT(slower, 5);
  EXPECT_GT(none, 0);
}

}  // namespace
}  // namespace braid
