#include "braid/planners/phaze/phaze_planner.h"

#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "braid/frontend/model.h"
#include "braid/planners/registry.h"
#include "braid/system/system.h"
#include "braid/verify/verify.h"

#include "planners/plan_assignments.h"
#include "planners/plan_objectives.h"
#include "planners/tiny_job.h"

namespace braid {
namespace {

using test::pick;

constexpr PhazeObjective kAllObjectives[] = {PhazeObjective::program, PhazeObjective::flush,
                                             PhazeObjective::simulated};

std::map<std::string, double> times_of(const Outcome& outcome) {
  std::map<std::string, double> times_s;
  for (const OwnTime& each : outcome.own_times) times_s[each.key] = each.time_s;
  return times_s;
}

std::string key_of(PhazeObjective objective) { return std::string(name_of(objective)) + "_s"; }

TEST(PhazePlanner, EachObjectiveIsLeastOfItself) {
  std::mt19937_64 random(131);
  int planned = 0, differ = 0;
  for (int n = 0; n < 150; ++n) {
    const Graph graph = test::tiny_graph(random, pick(random, 1, 6));
    const System system =
        test::tiny_system(random, 1 << pick(random, 0, 3),
                          pick(random, 0, 1) == 0 ? 1e12 : 1e6 * pick(random, 1, 20));
    Job job;
    job.graph = &graph;
    job.global_batch = 1L << pick(random, 0, 5);
    std::map<PhazeObjective, Outcome> found;
    for (const PhazeObjective objective : kAllObjectives) {
      PhazeJobSpace space;
      space.objective = objective;
      found.emplace(objective, plan_phaze(job, system, space, {}));
    }
    const bool any = !found.at(PhazeObjective::flush).candidates.empty();
    planned += any ? 1 : 0;
    for (const auto& [objective, outcome] : found) {
      ASSERT_EQ(!outcome.candidates.empty(), any) << n;
      if (!any) continue;
      const std::string key = key_of(objective);
      ASSERT_EQ(outcome.status, Status::optimal) << n;
      ASSERT_NEAR(outcome.objective, times_of(outcome).at(key), 1e-12 * outcome.objective) << n;
      for (const auto& [other, made] : found) {
        ASSERT_LE(outcome.objective, times_of(made).at(key) * (1 + 1e-9))
            << n << " " << key << " against " << key_of(other);
        differ += outcome.objective < times_of(made).at(key) * (1 - 1e-9) ? 1 : 0;
      }
      // Neither formula is below the exact time where stages are charged for what they take.
      ASSERT_LE(times_of(outcome).at("simulated_s"), times_of(outcome).at("flush_s") * (1 + 1e-9));
    }
  }
  EXPECT_GT(planned, 90);
  EXPECT_GT(differ, 20);
}

/// Of every degree and way of recomputation the best assignment, by brute force.
TEST(PhazePlanner, CutsBranchesInTheBestWayThereIs) {
  std::mt19937_64 random(133);
  int problems = 0, as_graph = 0;
  for (int n = 0; n < 60; ++n) {
    Graph graph = test::tiny_graph(random, pick(random, 2, 5));
    test::add_branches(random, graph);
    const System system =
        test::tiny_system(random, 1 << pick(random, 1, 2),
                          pick(random, 0, 1) == 0 ? 1e12 : 1e6 * pick(random, 1, 20));
    Job job;
    job.graph = &graph;
    job.global_batch = 1L << pick(random, 1, 3);
    for (const PhazeObjective objective : kAllObjectives) {
      PhazeJobSpace space;
      space.objective = objective;
      space.top = 1000;
      const auto time_s = [&](const Plan& plan) { return test::phaze_time_s(plan, objective); };
      const Outcome all = plan_phaze(job, system, space, {});
      double best_s = std::numeric_limits<double>::infinity();
      for (const Candidate& candidate : all.candidates) {
        const double cost_s = time_s(candidate.plan);
        ASSERT_NEAR(cost_s, test::least_of_assignments(candidate.plan, time_s), 1e-9 * cost_s) << n;
        ASSERT_TRUE(verify(candidate.plan).holds()) << n;
        best_s = std::min(best_s, cost_s);
        ++problems;
        as_graph += std::any_of(candidate.plan.stages.begin(), candidate.plan.stages.end(),
                                [](const Stage& stage) {
                                  const auto& layers = stage.chunks.front().layers;
                                  return layers.back() - layers.front() + 1 !=
                                         static_cast<int>(layers.size());
                                })
                        ? 1
                        : 0;
      }
      space.top = 1;
      const Outcome one = plan_phaze(job, system, space, {});
      ASSERT_EQ(one.candidates.empty(), all.candidates.empty()) << n;
      if (one.candidates.empty()) continue;
      EXPECT_EQ(one.status, Status::optimal) << n;
      ASSERT_NEAR(one.objective, best_s, 1e-9 * best_s) << n;
      ASSERT_NEAR(time_s(one.candidates.front().plan), best_s, 1e-9 * best_s) << n;
    }
  }
  EXPECT_GT(problems, 300);
  EXPECT_GT(as_graph, 20);
}

// With more alternatives wanted than there are, no limit keeps stages short.
TEST(PhazePlanner, OneStageHasAllLayersOfABranchedModel) {
  const Graph graph = load_model("candle-uno", {});
  const System system = load_system("dgx-a100:8");
  Job job;
  job.graph = &graph;
  job.global_batch = 1024;
  PhazeJobSpace space;
  space.pp = 1;
  space.top = 300;
  const Outcome outcome = plan_phaze(job, system, space, {});
  EXPECT_EQ(outcome.status, Status::optimal);
}

TEST(PhazePlanner, AnEarlyStopLeavesABound) {
  std::mt19937_64 random(132);
  int stopped = 0;
  for (int n = 0; n < 40; ++n) {
    const Graph graph = test::tiny_graph(random, 6);
    const System system = test::tiny_system(random, 8, 1e12);
    Job job;
    job.graph = &graph;
    job.global_batch = 16;
    for (const PhazeObjective objective : kAllObjectives) {
      PhazeJobSpace space;
      space.objective = objective;
      const Outcome whole = plan_phaze(job, system, space, {});
      const Outcome part = plan_phaze(job, system, space, Budget{1});
      ASSERT_LE(part.search_bound_s, whole.objective * (1 + 1e-9)) << n;
      if (part.candidates.empty()) continue;
      ASSERT_GE(part.objective, whole.objective * (1 - 1e-9)) << n;
      stopped += part.status == Status::feasible ? 1 : 0;
    }
  }
  EXPECT_GT(stopped, 5);
}

}  // namespace
}  // namespace braid
