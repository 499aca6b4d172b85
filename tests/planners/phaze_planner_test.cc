#include <map>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "braid/planners/planner.h"

#include "planners/tiny_job.h"

namespace braid {
namespace {

using testing::pick;

constexpr PhazeObjective kObjectives[] = {PhazeObjective::program, PhazeObjective::flush,
                                          PhazeObjective::simulated};

std::map<std::string, double> times_of(const Outcome& outcome) {
  return {outcome.other_times_s.begin(), outcome.other_times_s.end()};
}

std::string key_of(PhazeObjective objective) { return std::string(name_of(objective)) + "_s"; }

TEST(PhazePlanner, EachObjectiveIsLeastOfItself) {
  std::mt19937_64 random(131);
  int planned = 0, differ = 0;
  for (int n = 0; n < 150; ++n) {
    const Graph graph = testing::tiny_graph(random, pick(random, 1, 6));
    const System system =
        testing::tiny_system(random, 1 << pick(random, 0, 3),
                             pick(random, 0, 1) == 0 ? 1e12 : 1e6 * pick(random, 1, 20));
    Job job;
    job.graph = &graph;
    job.global_batch = 1L << pick(random, 0, 5);
    std::map<PhazeObjective, Outcome> found;
    for (const PhazeObjective objective : kObjectives) {
      SpaceOptions space;
      space.phaze_objective = objective;
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

TEST(PhazePlanner, AnEarlyStopLeavesABound) {
  std::mt19937_64 random(132);
  int stopped = 0;
  for (int n = 0; n < 40; ++n) {
    const Graph graph = testing::tiny_graph(random, 6);
    const System system = testing::tiny_system(random, 8, 1e12);
    Job job;
    job.graph = &graph;
    job.global_batch = 16;
    for (const PhazeObjective objective : kObjectives) {
      SpaceOptions space;
      space.phaze_objective = objective;
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
