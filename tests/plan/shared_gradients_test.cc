#include "braid/plan/shared_gradients.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "braid/plan/stage_load.h"
#include "braid/system/links.h"

#include "report/plan_maker.h"

namespace braid {
namespace {

Parallelism parallelism(int tp, int dp, int pp) {
  Parallelism parallel;
  parallel.tp = tp;
  parallel.dp = dp;
  parallel.pp = pp;
  parallel.num_micro_batches = pp;
  return parallel;
}

/// A made-up plan of pp·2 blocks whose first and last layer share 3·10^6 elements.
Plan tied_plan(const Parallelism& parallel) {
  Plan plan = test::made_plan(parallel, 2 * parallel.pp);
  plan.system.groups.front().intra_node.latency_s = 3e-6;
  for (NetworkLevel& level : plan.system.levels) level.latency_s = 1e-5;
  const auto last = static_cast<std::int32_t>(plan.profile.layers.size()) - 1;
  plan.profile.shared = {{{0, last}, 3e6, true}};
  return plan;
}

TEST(SharedGradients, AreAllReducedByRingsOfDevicesOfTheStagesThatHoldThem) {
  // Rings of named devices, all at once, by the code that divides links among flows.
  for (const Parallelism& parallel :
       {parallelism(1, 1, 4), parallelism(4, 1, 2), parallelism(2, 2, 3), parallelism(4, 2, 2),
        parallelism(1, 2, 2), parallelism(1, 4, 5)}) {
    for (const bool three : {false, true}) {
      Plan plan = tied_plan(parallel);
      std::vector<std::size_t> holders = {0, plan.stages.size() - 1};
      if (three && parallel.pp > 2) {
        SharedParameter& parameter = plan.profile.shared.front();
        parameter.layers.insert(parameter.layers.begin() + 1,
                                plan.stages[1].chunks.front().layers.front());
        holders.insert(holders.begin() + 1, 1);
      }
      std::vector<std::vector<std::int64_t>> rings(plan.stages.front().devices.size());
      for (std::size_t i = 0; i < rings.size(); ++i) {
        for (const std::size_t s : holders) rings[i].push_back(plan.stages[s].devices[i]);
      }
      const std::vector<double> rings_s =
          ring_all_reduce_s(plan.system, rings, 4 * 3e6 / parallel.tp);
      const double slowest_s = *std::max_element(rings_s.begin(), rings_s.end());
      const std::vector<double> time_s = shared_gradient_sync_s(plan);
      for (std::size_t s = 0; s < time_s.size(); ++s) {
        const bool holds = std::find(holders.begin(), holders.end(), s) != holders.end();
        EXPECT_NEAR(time_s[s], holds ? slowest_s : 0, 1e-12) << parallel.tp << " " << parallel.dp;
        EXPECT_EQ(stage_loads(plan)[s].sync.shared_gradient_sync_s, time_s[s]);
      }
    }
  }
}

TEST(SharedGradients, OfAPairMoveHalfEachWayTwice) {
  // Whole nodes of four: each device has a quarter of its node's 4 GB/s, and all four of it send.
  const Plan plan = tied_plan(parallelism(4, 1, 2));
  const double achieved = 1e9 * plan.system.levels.front().efficiency;
  EXPECT_NEAR(shared_gradient_sync_s(plan)[0], 2 * (1e-5 + 3e6 / 4 * 4 / 2 / achieved), 1e-12);
}

TEST(SharedGradients, AreSummedInAFormatOfTheirOwn) {
  Plan plan = tied_plan(parallelism(4, 1, 2));
  const double single_s = shared_gradient_sync_s(plan)[0] - 2e-5;
  plan.precision.shared_gradient = Dtype::f16;
  EXPECT_NEAR(shared_gradient_sync_s(plan)[0] - 2e-5, single_s / 2, 1e-12);
}

TEST(SharedGradients, CostNothingWithinAStage) {
  EXPECT_EQ(shared_gradient_sync_s(tied_plan(parallelism(2, 2, 1))), std::vector<double>{0});
  Plan plan = tied_plan(parallelism(1, 1, 3));
  plan.profile.shared.front().layers = {0, 1};
  EXPECT_EQ(shared_gradient_sync_s(plan), (std::vector<double>{0, 0, 0}));
}

TEST(SharedGradients, AreWhatADeviceKeepsOfThem) {
  const SharedParameter table{{0, 9}, 1e6, true};
  const SharedParameter whole{{0, 9}, 1e6, false};
  Parallelism form = parallelism(4, 8, 2);
  Precision precision;
  EXPECT_EQ(shared_gradient_bytes(table, form, precision), 1e6);
  EXPECT_EQ(shared_gradient_bytes(whole, form, precision), 4e6);
  form.zero = Zero::optimizer;
  EXPECT_EQ(shared_gradient_bytes(table, form, precision), 1e6);
  form.zero = Zero::gradients;
  EXPECT_EQ(shared_gradient_bytes(table, form, precision), 1e6 / 8);
  precision.gradient = Dtype::bf16;
  EXPECT_EQ(shared_gradient_bytes(table, form, precision), 1e6 / 16);
}

TEST(SharedGradients, OfSeveralParametersFollowEachOther) {
  Plan plan = tied_plan(parallelism(1, 1, 4));
  const double one_s = shared_gradient_sync_s(plan)[0];
  plan.profile.shared.push_back(plan.profile.shared.front());
  EXPECT_DOUBLE_EQ(shared_gradient_sync_s(plan)[0], 2 * one_s);
  EXPECT_DOUBLE_EQ(shared_gradient_sync_s(plan)[3], 2 * one_s);
}

}  // namespace
}  // namespace braid
