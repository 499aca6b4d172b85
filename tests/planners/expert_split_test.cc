#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "braid/base/infinity.h"
#include "braid/planners/registry.h"
#include "braid/verify/verify.h"

#include "planners/tiny_decoder.h"
#include "planners/tiny_job.h"

namespace braid {
namespace {

using test::pick;

// A planner that splits experts itself takes the split with which it plans best.
TEST(ExpertSplit, IsTheBestOfAll) {
  std::mt19937_64 random(901);
  int planned = 0, split = 0, only_split = 0;
  for (int trial = 0; trial < 40; ++trial) {
    const Graph graph = test::tiny_decoder(random, true);
    const System system = test::tiny_system(
        random, 1 << pick(random, 1, 3), pick(random, 0, 1) == 0 ? 1e12 : 5e6 * pick(random, 1, 9));
    Job job;
    job.graph = &graph;
    job.global_batch = 1L << pick(random, 2, 5);
    for (const char* name : {"amp", "phaze", "piper", "no-tp", "equi", "equi-no-tp", "dp-only"}) {
      const auto plan_with = [&](const Degrees& ep) {
        PlannerOptions options;
        options.ep = ep;
        return find_planner(name).plan(job, system, options, {}, {});
      };
      const Outcome open = plan_with({});
      double best_s = kInfinity, whole_s = kInfinity;
      for (const int ep : {1, 2, 4}) {
        const Outcome fixed = plan_with(ep);
        if (fixed.candidates.empty()) continue;
        EXPECT_EQ(fixed.candidates.front().plan.parallel.ep, ep) << name << " " << trial;
        best_s = std::min(best_s, fixed.objective);
        if (ep == 1) whole_s = fixed.objective;
      }
      ASSERT_EQ(open.candidates.empty(), best_s == kInfinity) << name << " " << trial;
      if (open.candidates.empty()) continue;
      ++planned;
      EXPECT_NEAR(open.objective, best_s, 1e-9 * best_s) << name << " " << trial;
      const Plan& plan = open.candidates.front().plan;
      for (const Check& check : verify(plan).checks) {
        EXPECT_TRUE(check.holds) << name << " " << trial << ": " << check.name << ": "
                                 << check.detail;
      }
      if (plan.parallel.ep == 1) continue;
      ++split;
      if (whole_s == kInfinity) ++only_split;
    }
  }
  EXPECT_GT(planned, 150);
  EXPECT_GT(split, 40);
  EXPECT_GT(only_split, 0);
}

// Stages of graphs may each have another split, so that a plan without any is one of them.
TEST(ExpertSplit, OfGraphsIsOneThatFits) {
  std::mt19937_64 random(902);
  int split = 0;
  for (int trial = 0; trial < 15; ++trial) {
    const Graph graph = test::tiny_decoder(random, true);
    const System system =
        test::tiny_system(random, 1 << pick(random, 1, 3), 5e6 * pick(random, 1, 9));
    Job job;
    job.graph = &graph;
    job.global_batch = 1L << pick(random, 2, 5);
    const Outcome outcome = find_planner("graphpipe").plan(job, system, {}, {}, {});
    PlannerOptions whole;
    whole.ep = 1;
    const Outcome without = find_planner("graphpipe").plan(job, system, whole, {}, {});
    if (!without.candidates.empty()) {
      EXPECT_FALSE(outcome.candidates.empty()) << trial;
    }
    if (outcome.candidates.empty()) continue;
    const Plan& plan = outcome.candidates.front().plan;
    EXPECT_TRUE(verify(plan).holds()) << trial;
    split += std::any_of(plan.stages.begin(), plan.stages.end(),
                         [](const Stage& stage) { return stage.own && stage.own->ep > 1; })
                 ? 1
                 : 0;
  }
  EXPECT_GT(split, 2);
}

}  // namespace
}  // namespace braid
