#include "braid/schedule/plan_orders.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/plan/stage_rounds.h"
#include "braid/schedule/timeline.h"

#include "schedule/plans.h"

namespace braid {
namespace {

using ::testing::HasSubstr;

std::string refusal(const Plan& plan, const std::string& name) {
  try {
    order_of_plan(plan, name);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// Two simulators with code of their own.
TEST(PlanOrders, ThePlansOwnScheduleTakesWhatSimulateSays) {
  for (int pp = 1; pp <= 5; ++pp) {
    for (const double bytes : {0.0, 1e8, 3e9}) {
      for (const double parameters : {0.0, 2e8}) {
        const auto check = [&](ScheduleKind kind, int vp, const char* name) {
          Plan plan = small_plan(kind, pp, vp, std::int64_t{3} * pp);
          set_parameters(plan, parameters);
          set_boundary_bytes(plan, bytes);
          const double time_s = simulate_time_s(plan);
          const PlanOrder order = order_of_plan(plan, name);
          EXPECT_NEAR(order.iteration_time_s, time_s, 1e-12 * time_s) << name << ' ' << pp;
          const Metrics metrics = measure(plan);
          EXPECT_NEAR(order.peak_memory_bytes, metrics.peak_memory_bytes,
                      1e-9 * metrics.peak_memory_bytes)
              << name << ' ' << pp;
        };
        check(ScheduleKind::gpipe, 1, "gpipe");
        check(ScheduleKind::one_f_one_b, 1, "1f1b");
        if (parameters == 0) check(ScheduleKind::interleaved, 3, "interleaved");
      }
    }
  }
}

/// A plan that lists the passes of a schedule takes what that schedule does.
TEST(PlanOrders, PlansListTheirPassesInTheOrderOfASchedule) {
  for (int pp = 1; pp <= 4; ++pp) {
    for (const double bytes : {0.0, 1e8, 3e9}) {
      Plan plan = small_plan(ScheduleKind::one_f_one_b, pp, 1, std::int64_t{2} * pp);
      set_boundary_bytes(plan, bytes);
      plan.claims = Claims{1, 1, 0, 0, 0};
      for (const std::string& name : plan_order_names()) {
        if (name == "interleaved" || name == "2bw" || name.substr(0, 3) == "zb-") {
          EXPECT_THROW(plan_in_order(plan, name), Error) << name;
          continue;
        }
        const Plan listed = plan_in_order(plan, name);
        EXPECT_FALSE(listed.claims);
        const PlanOrder order = order_of_plan(plan, name);
        const Metrics metrics = measure(listed);
        EXPECT_NEAR(metrics.iteration_time_s, order.iteration_time_s,
                    1e-12 * order.iteration_time_s)
            << name << ' ' << pp;
        EXPECT_NEAR(metrics.peak_memory_bytes, order.peak_memory_bytes,
                    1e-9 * order.peak_memory_bytes)
            << name << ' ' << pp;
        EXPECT_EQ(micro_batches_held(listed), order.in_flight) << name;
      }
    }
  }
  const Plan chunks = small_plan(ScheduleKind::interleaved, 2, 2, 4);
  EXPECT_THROW(plan_in_order(chunks, "gpipe"), Error);
}

TEST(PlanOrders, BubblesAreThoseOfThePublishedFormulas) {
  // Forward 1 s, backward 2.5 s.
  for (int pp = 1; pp <= 4; ++pp) {
    const Plan plan = small_plan(ScheduleKind::one_f_one_b, pp, 1, std::int64_t{4} * pp);
    const double work_s = 3.5 * 4 * pp;
    EXPECT_NEAR(order_of_plan(plan, "1f1b").idle_s, 3.5 * (pp - 1), 1e-9);
    EXPECT_NEAR(order_of_plan(plan, "gpipe").idle_s, 3.5 * (pp - 1), 1e-9);
    EXPECT_NEAR(order_of_plan(plan, "2bw").iteration_time_s, work_s, 1e-9);
    EXPECT_NEAR(order_of_plan(plan, "2bw").idle_s, 0, 1e-9);
  }
}

TEST(PlanOrders, WhatWeightGradientsHideShowsWhereTheyArePutOff) {
  Plan hidden = small_plan(ScheduleKind::one_f_one_b, 4, 1, 8);
  const Plan none = hidden;
  Plan shown = hidden;
  hidden.profile.kinds[0][0].cost.hidden_tp_s = 0.5;
  shown.profile.kinds[0][0].cost.backward_input.tp_comm_s = 0.5;
  for (const char* name : {"gpipe", "1f1b", "greedy"}) {
    EXPECT_EQ(order_of_plan(hidden, name).iteration_time_s,
              order_of_plan(none, name).iteration_time_s)
        << name;
  }
  for (const char* name : {"zb-h1", "zb-h2"}) {
    EXPECT_EQ(order_of_plan(hidden, name).iteration_time_s,
              order_of_plan(shown, name).iteration_time_s)
        << name;
    EXPECT_GT(order_of_plan(hidden, name).iteration_time_s,
              order_of_plan(none, name).iteration_time_s)
        << name;
  }
}

TEST(PlanOrders, NoScheduleBeatsTheOneThatIsProvedShortest) {
  Plan plan = small_plan(ScheduleKind::one_f_one_b, 3, 1, 5);
  set_boundary_bytes(plan, 1e9);
  const PlanOrder best = order_of_plan(plan, "search");
  ASSERT_TRUE(best.proved);
  EXPECT_TRUE(*best.proved);
  for (const char* name : {"gpipe", "1f1b", "1f1b-least", "kfkb", "greedy"}) {
    EXPECT_GE(order_of_plan(plan, name).iteration_time_s, best.iteration_time_s * (1 - 1e-12))
        << name;
  }
  // The fewest warm-up passes that lose no time have no more in flight than all passes first.
  EXPECT_LE(order_of_plan(plan, "1f1b-least").iteration_time_s,
            order_of_plan(plan, "1f1b").iteration_time_s * (1 + 1e-12));
}

TEST(PlanOrders, RefusesWhatAScheduleIsNotDefinedForNamingTheStage) {
  const Plan plan = small_plan(ScheduleKind::one_f_one_b, 4, 1, 8);
  EXPECT_THAT(refusal(plan, "zb-v"), HasSubstr("stage 3 is on device 2"));
  EXPECT_THAT(refusal(plan, "unheard-of"), HasSubstr("no schedule is called unheard-of"));
  EXPECT_THAT(refusal(small_plan(ScheduleKind::interleaved, 2, 2, 4), "1f1b"), HasSubstr("stage"));
  EXPECT_THAT(refusal(small_plan(ScheduleKind::one_f_one_b, 4, 1, 2), "2bw"), HasSubstr("stage"));
  const Plan longer = small_plan(ScheduleKind::one_f_one_b, 4, 1, 4096);
  EXPECT_THAT(refusal(longer, "search"), HasSubstr("at most 256 passes, not 32768"));
  EXPECT_THAT(refusal(longer, "greedy"), HasSubstr("at most 4096 passes"));
  Plan gathered = plan;
  gathered.parallel.zero = Zero::optimizer;
  set_parameters(gathered, 2e8);
  EXPECT_THAT(refusal(gathered, "1f1b"), HasSubstr("stage 1 gathers its parameters"));
  Plan none = plan;
  none.stages.clear();
  EXPECT_THAT(refusal(none, "1f1b"), HasSubstr("no stages"));
}

}  // namespace
}  // namespace braid
