#include "braid/schedule/plan_orders.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/error.h"
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
        const auto check = [&](ScheduleKind kind, int vp, const char* name, Zero zero) {
          Plan plan = small_plan(kind, pp, vp, std::int64_t{3} * pp);
          plan.parallel.zero = zero;
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
        for (const Zero zero : {Zero::none, Zero::optimizer, Zero::gradients, Zero::parameters}) {
          check(ScheduleKind::gpipe, 1, "gpipe", zero);
          check(ScheduleKind::one_f_one_b, 1, "1f1b", zero);
          check(ScheduleKind::interleaved, 3, "interleaved", zero);
        }
      }
    }
  }
}

/// What a timeline must keep to whatever the schedule: every pass once, one at a time on its
/// device, inside the iteration; its times and peaks are those of the table, to the last bit.
void expect_whole(const Plan& plan, const DrawnOrder& drawn, const PlanOrder& order,
                  const std::string& name) {
  const Timeline& timeline = drawn.timeline;
  EXPECT_EQ(timeline.iteration_time_s, order.iteration_time_s) << name;
  EXPECT_EQ(drawn.order.peak_memory_bytes, order.peak_memory_bytes) << name;
  EXPECT_EQ(timeline.rounds, name == "2bw" ? 4 : 1);
  if (timeline.rounds == 1) {
    EXPECT_EQ(timeline.end_s, order.iteration_time_s) << name;
  }
  double end_s = 0;
  std::vector<double> free_s(plan.stages.size(), 0);
  std::map<EventKind, std::size_t> counts;
  for (const Event& event : timeline.events) {
    ++counts[event.kind];
    end_s = std::max(end_s, event.end_s);
    EXPECT_LE(event.start_s, event.end_s);
    if (event.kind == EventKind::send || event.kind == EventKind::gradient_sync ||
        event.kind == EventKind::parameter_sync) {
      continue;
    }
    double& free = free_s[static_cast<std::size_t>(event.stage)];
    EXPECT_GE(event.start_s, free) << name;
    free = event.end_s;
  }
  EXPECT_EQ(end_s, timeline.end_s) << name;
  const auto passes = static_cast<std::size_t>(timeline.rounds * plan.parallel.num_micro_batches) *
                      plan.stages.size() * plan.stages[0].chunks.size();
  const bool halves = name.starts_with("zb-");
  EXPECT_EQ(counts[EventKind::forward], passes) << name;
  EXPECT_EQ(counts[EventKind::backward], halves ? 0 : passes) << name;
  EXPECT_EQ(counts[EventKind::input_gradient], halves ? passes : 0) << name;
  EXPECT_EQ(counts[EventKind::weight_gradient], halves ? passes : 0) << name;
  double peak = 0;
  for (const std::vector<MemorySample>& samples : timeline.memory) {
    for (std::size_t i = 0; i < samples.size(); ++i) {
      peak = std::max(peak, samples[i].bytes);
      if (i > 0) {
        EXPECT_GE(samples[i].time_s, samples[i - 1].time_s);
      }
    }
  }
  EXPECT_EQ(peak, order.peak_memory_bytes) << name;
  const DrawnOrder again = draw_order(plan, name);
  EXPECT_TRUE(to_trace(again.plan, again.timeline) == to_trace(drawn.plan, timeline)) << name;
}

TEST(PlanOrders, EveryScheduleIsDrawnAsItIsTimed) {
  std::set<std::string> drawn_names;
  for (const int vp : {1, 2}) {
    for (int pp = 1; pp <= 4; ++pp) {
      for (const double bytes : {0.0, 1e9}) {
        Plan plan = small_plan(vp > 1 ? ScheduleKind::interleaved : ScheduleKind::one_f_one_b, pp,
                               vp, std::int64_t{2} * pp);
        set_boundary_bytes(plan, bytes);
        set_parameters(plan, bytes > 0 ? 2e8 : 0);
        for (const std::string& name : plan_order_names()) {
          if (refusal(plan, name) != "no error") {
            EXPECT_THROW(draw_order(plan, name), Error) << name;
            continue;
          }
          const PlanOrder order = order_of_plan(plan, name);
          expect_whole(plan, draw_order(plan, name), order, name);
          drawn_names.insert(name);
        }
      }
    }
  }
  EXPECT_EQ(drawn_names.size(), plan_order_names().size());
}

/// Two simulators with code of their own, event by event.
TEST(PlanOrders, ThePlansOwnScheduleIsDrawnAsSimulateDrawsIt) {
  for (const auto& [kind, vp, name] : {std::tuple{ScheduleKind::gpipe, 1, "gpipe"},
                                       std::tuple{ScheduleKind::one_f_one_b, 1, "1f1b"},
                                       std::tuple{ScheduleKind::interleaved, 2, "interleaved"}}) {
    for (const Zero zero : {Zero::none, Zero::optimizer}) {
      Plan plan = small_plan(kind, 3, vp, 6);
      set_parameters(plan, 2e8);
      set_boundary_bytes(plan, 1e9);
      plan.parallel.zero = zero;
      const Timeline own = simulate(plan);
      const Timeline drawn = draw_order(plan, name).timeline;
      ASSERT_EQ(drawn.events.size(), own.events.size()) << name;
      const auto near = [&](double a, double b) { return std::abs(a - b) <= 1e-12 * own.end_s; };
      for (const Event& event : own.events) {
        EXPECT_TRUE(std::any_of(drawn.events.begin(), drawn.events.end(), [&](Event other) {
          if (!near(other.start_s, event.start_s) || !near(other.end_s, event.end_s)) return false;
          other.start_s = event.start_s;
          other.end_s = event.end_s;
          return other == event;
        })) << name;
      }
    }
  }
}

/// ZB-V on a plan of two chunks a stage: the second ones are dealt out in reverse.
TEST(PlanOrders, ZeroBubbleVFoldsThePlan) {
  for (int pp = 1; pp <= 5; ++pp) {
    Plan plan = small_plan(ScheduleKind::interleaved, pp, 2, std::int64_t{4} * pp);
    plan.profile.kinds[0][0].cost.recompute.compute_s = 0;  // 1 s for each pass and half.
    const DrawnOrder drawn = draw_order(plan, "zb-v");
    for (int s = 0; s < pp; ++s) {
      const std::vector<Chunk>& chunks = drawn.plan.stages[static_cast<std::size_t>(s)].chunks;
      EXPECT_EQ(chunks[0].layers, std::vector<std::int32_t>{s});
      EXPECT_EQ(chunks[1].layers, std::vector<std::int32_t>{2 * pp - 1 - s});
    }
    // No device idles but before its first pass (Qi et al. 2024); the last one waits for all
    // others.
    EXPECT_NEAR(drawn.order.iteration_time_s, 6 * 4 * pp + (pp - 1), 1e-9);
    // Between its two chunks the last stage sends nothing.
    for (const Event& event : drawn.timeline.events) {
      if (event.kind == EventKind::send) {
        EXPECT_NE(event.stage, event.peer_stage);
      }
    }
  }
  EXPECT_THAT(refusal(small_plan(ScheduleKind::interleaved, 2, 3, 4), "zb-v"), HasSubstr("stage"));
}

TEST(PlanOrders, ActivationsOnTheHostTakeThePlaceThatSimulateGivesThem) {
  Plan plan = small_plan(ScheduleKind::one_f_one_b, 4, 1, 8);
  plan.profile.kinds[0][0].cost.offloaded_bytes = 5;
  const Metrics metrics = measure(plan);
  EXPECT_EQ(order_of_plan(plan, "1f1b").peak_memory_bytes, metrics.peak_memory_bytes);
  EXPECT_EQ(metrics.peak_memory_bytes, 4 * 3 + 2 * 5);
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

TEST(PlanOrders, ThePlansOwnScheduleIsAsMeasured) {
  for (const ScheduleKind schedule :
       {ScheduleKind::one_f_one_b, ScheduleKind::gpipe, ScheduleKind::interleaved}) {
    const bool chunks = schedule == ScheduleKind::interleaved;
    Plan plan = small_plan(schedule, 4, chunks ? 2 : 1, 8);
    set_boundary_bytes(plan, 1e9);
    const PlanOrder named = order_of_plan(plan, schedule == ScheduleKind::gpipe ? "gpipe"
                                                : chunks                        ? "interleaved"
                                                                                : "1f1b");
    const PlanOrder own = order_as_planned(plan);
    EXPECT_NEAR(own.iteration_time_s, named.iteration_time_s, 1e-9);
    EXPECT_NEAR(own.idle_s, named.idle_s, 1e-9);
    EXPECT_EQ(own.peak_memory_bytes, named.peak_memory_bytes);
    EXPECT_EQ(own.tightest_stage, named.tightest_stage);
    EXPECT_EQ(own.in_flight, chunks ? std::vector<std::int64_t>{} : named.in_flight);
  }
  Plan plan = small_plan(ScheduleKind::one_f_one_b, 2, 1, 8);
  plan.stages[0].own.emplace().warm_up = 5;
  EXPECT_EQ(order_as_planned(plan).in_flight, (std::vector<std::int64_t>{5, 1}));
  EXPECT_EQ(order_as_planned(plan).iteration_time_s, measure(plan).iteration_time_s);
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

TEST(PlanOrders, StagesMayHaveAKOfTheirOwn) {
  Plan plan = small_plan(ScheduleKind::one_f_one_b, 3, 1, 8);
  set_boundary_bytes(plan, 1e9);
  const PlanOrder best = order_of_plan(plan, "kfkb", {{}, true});
  EXPECT_TRUE(best.all_k_tried);
  EXPECT_GT(best.k_tried, 0);
  const double least_s = order_of_plan(plan, "1f1b-least").iteration_time_s;
  const PlanOrder ones = order_of_plan(plan, "kfkb", {{1, 1, 1}});
  EXPECT_EQ(ones.iteration_time_s, least_s);
  EXPECT_EQ(ones.k_tried, 0);
  for (const KChoice& choice : {KChoice{{2, 1, 4}}, KChoice{{8, 3, 1}}, KChoice{{1, 1, 100}}}) {
    const PlanOrder own = order_of_plan(plan, "kfkb", choice);
    EXPECT_EQ(own.k, choice.k);
    EXPECT_GE(own.iteration_time_s, best.iteration_time_s);
    EXPECT_EQ(draw_order(plan, "kfkb", choice).timeline.iteration_time_s, own.iteration_time_s);
  }
  try {
    order_of_plan(plan, "kfkb", {{1, 2}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("the plan has 3 stages, and k is given for 2"));
  }
}

TEST(PlanOrders, RefusesWhatAScheduleIsNotDefinedForNamingTheStage) {
  const Plan plan = small_plan(ScheduleKind::one_f_one_b, 4, 1, 8);
  EXPECT_THAT(refusal(plan, "zb-v"),
              HasSubstr("stage 1 has 1 chunk of layers; zb-v is defined for two"));
  EXPECT_THAT(refusal(plan, "unheard-of"), HasSubstr("no schedule is called unheard-of"));
  const Plan chunks = small_plan(ScheduleKind::interleaved, 2, 2, 4);
  for (const char* name : {"1f1b", "zb-h1", "kfkb", "2bw", "greedy", "search"}) {
    EXPECT_THAT(refusal(chunks, name), HasSubstr("stage 1 has 2 chunks of layers")) << name;
  }
  EXPECT_EQ(refusal(chunks, "gpipe"), "no error");
  EXPECT_THAT(refusal(small_plan(ScheduleKind::one_f_one_b, 4, 1, 2), "2bw"), HasSubstr("stage"));
  const Plan longer = small_plan(ScheduleKind::one_f_one_b, 4, 1, 4096);
  EXPECT_THAT(refusal(longer, "search"), HasSubstr("at most 256 passes, not 32768"));
  EXPECT_THAT(refusal(longer, "greedy"), HasSubstr("at most 4096 passes"));
  Plan gathered = plan;
  gathered.parallel.zero = Zero::optimizer;
  set_parameters(gathered, 2e8);
  EXPECT_THAT(refusal(gathered, "2bw"), HasSubstr("stage 1 gathers its parameters"));
  EXPECT_EQ(refusal(gathered, "1f1b"), "no error");
  Plan none = plan;
  none.stages.clear();
  EXPECT_THAT(refusal(none, "1f1b"), HasSubstr("no stages"));
}

}  // namespace
}  // namespace braid
