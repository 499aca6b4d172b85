#include "braid/planners/amp/amp_planner.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <random>
#include <set>
#include <span>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/dtype.h"
#include "braid/base/error.h"
#include "braid/graph/tensor_size.h"
#include "braid/plan/plan_json.h"
#include "braid/plan/stage_context.h"
#include "braid/plan/stage_load.h"
#include "braid/plan/totals.h"
#include "braid/planners/amp/amp_job.h"
#include "braid/planners/job/outcomes.h"
#include "braid/planners/job/space.h"
#include "braid/planners/phaze/phaze_planner.h"
#include "braid/planners/registry.h"
#include "braid/schedule/timeline.h"
#include "braid/system/links.h"
#include "braid/verify/verify.h"

#include "planners/plan_assignments.h"
#include "planners/plan_objectives.h"
#include "planners/tiny_job.h"

namespace braid {
namespace {

using test::pick;

struct Tiny {
  Graph graph;
  System system;
  Job job;
};

Tiny tiny(std::mt19937_64& random) {
  Tiny made{test::tiny_graph(random, pick(random, 1, 6)),
            test::tiny_system(random, 1 << pick(random, 0, 3),
                              pick(random, 0, 1) == 0 ? 1e12 : 1e6 * pick(random, 1, 20)),
            {}};
  made.job.global_batch = 1L << pick(random, 0, 5);
  return made;
}

// The space has a configuration for each ZeRO stage, of which AMP takes one.
TEST(AmpJob, ListsEachConfigurationOnce) {
  std::mt19937_64 random(80);
  std::size_t listed = 0, in_space = 0;
  for (int n = 0; n < 60; ++n) {
    Tiny made = tiny(random);
    made.job.graph = &made.graph;
    const AmpJob amp(made.job, made.system, {}, "amp");
    const std::set<Configuration> all(amp.configurations().begin(), amp.configurations().end());
    EXPECT_EQ(all.size(), amp.configurations().size());
    listed += all.size();
    const SpaceOptions space = one_form_space({}, "amp");
    for (Configuration each : base_configurations(space_limits(made.job, made.system), space)) {
      ++in_space;
      each.zero = each.dp > 1 ? Zero::optimizer : Zero::none;
      EXPECT_EQ(all.count(each), each.tp <= made.system.groups.front().devices_per_node ? 1U : 0U);
    }
  }
  EXPECT_GT(in_space, listed);
}

TEST(AmpPlanner, PlansFitAndNoBaselineBeatsIt) {
  std::mt19937_64 random(81);
  int planned = 0;
  for (int n = 0; n < 150; ++n) {
    Tiny made = tiny(random);
    made.job.graph = &made.graph;
    const Outcome amp = plan_amp(made.job, made.system, {}, {});
    const Outcome braid = plan_braid(made.job, made.system, {}, {});
    if (amp.candidates.empty()) {
      EXPECT_EQ(amp.status, Status::infeasible);
      ASSERT_TRUE(amp.infeasibility.has_value());
      continue;
    }
    ++planned;
    const Candidate& best = amp.candidates.front();
    for (std::size_t stage = 0; stage < best.plan.stages.size(); ++stage) {
      EXPECT_LE(memory_of_stages(best.plan)[stage].device_total(),
                usable_bytes(made.system.groups.front().chip) * (1 + 1e-12));
    }
    // AMP's plans are in braid's space, which braid searches to the end.
    ASSERT_FALSE(braid.candidates.empty());
    EXPECT_LE(braid.candidates.front().metrics.iteration_time_s,
              best.metrics.iteration_time_s * (1 + 1e-9));
    EXPECT_EQ(amp.status, Status::optimal);
    EXPECT_EQ(amp.search_bound_s, amp.objective);
    for (const auto plan : {plan_amp_sa, plan_random}) {
      const Outcome other = plan(made.job, made.system, {}, {}, {});
      if (other.candidates.empty()) continue;
      EXPECT_GE(other.objective, amp.objective * (1 - 1e-12)) << n;
      const Outcome again = plan(made.job, made.system, {}, {}, {});
      EXPECT_EQ(to_text(to_json(again.candidates.front().plan)),
                to_text(to_json(other.candidates.front().plan)));
    }
  }
  EXPECT_GT(planned, 60);
}

TEST(PhazePlanner, PlansFitAndItsObjectiveIsTheBestOfEveryDegree) {
  std::mt19937_64 random(84);
  int planned = 0;
  for (int n = 0; n < 100; ++n) {
    Tiny made = tiny(random);
    made.job.graph = &made.graph;
    const Outcome phaze = plan_phaze(made.job, made.system, {}, {});
    const Outcome amp = plan_amp(made.job, made.system, {}, {});
    if (phaze.candidates.empty()) {
      EXPECT_EQ(phaze.status, Status::infeasible);
      EXPECT_TRUE(amp.candidates.empty());
      continue;
    }
    ++planned;
    const Candidate& best = phaze.candidates.front();
    for (std::size_t stage = 0; stage < best.plan.stages.size(); ++stage) {
      EXPECT_LE(memory_of_stages(best.plan)[stage].device_total(),
                usable_bytes(made.system.groups.front().chip) * (1 + 1e-12));
    }
    // Each degree on its own is no better, and one of them is as good.
    double least_s = std::numeric_limits<double>::infinity();
    for (int pp = 1; pp <= 8; pp *= 2) {
      PhazeJobSpace space;
      space.pp = pp;
      if (pp > static_cast<int>(made.graph.layers.size()) || made.system.device_count % pp != 0) {
        continue;
      }
      const Outcome one = plan_phaze(made.job, made.system, space, {});
      if (!one.candidates.empty()) least_s = std::min(least_s, one.objective);
    }
    EXPECT_NEAR(least_s, phaze.objective, 1e-9 * least_s) << n;
  }
  EXPECT_GT(planned, 40);
}

/// AMP uses all devices there are, so that more of them is another problem.
TEST(AmpPlanner, MoreMemoryAndBandwidthNeverHurt) {
  std::mt19937_64 random(85);
  int tight = 0, faster_s = 0;
  for (int n = 0; n < 200; ++n) {
    Tiny made = tiny(random);
    made.job.graph = &made.graph;
    const auto cost_s = [&](const System& system) {
      const Outcome outcome = plan_amp(made.job, system, {}, {});
      return outcome.candidates.empty() ? std::numeric_limits<double>::infinity()
                                        : outcome.objective;
    };
    const double before_s = cost_s(made.system);
    System larger = made.system;
    larger.groups.front().chip.memory.bytes *= 1.5;
    const double with_memory_s = cost_s(larger);
    EXPECT_LE(with_memory_s, before_s * (1 + 1e-9)) << n;
    tight += with_memory_s < before_s * (1 - 1e-9) ? 1 : 0;
    System faster = made.system;
    faster.groups.front().intra_node.bytes_per_s *= 2;
    faster.groups.front().intra_node.unit_bytes_per_s *= 2;
    for (NetworkLevel& level : faster.levels) {
      level.bytes_per_s *= 2;
      level.unit_bytes_per_s *= 2;
    }
    const double with_bandwidth_s = cost_s(faster);
    EXPECT_LE(with_bandwidth_s, before_s * (1 + 1e-9)) << n;
    faster_s += with_bandwidth_s < before_s * (1 - 1e-9) ? 1 : 0;
  }
  EXPECT_GT(tight, 5);
  EXPECT_GT(faster_s, 50);
}

TEST(AmpPlanner, CutsBranchesInTheBestWayThereIs) {
  std::mt19937_64 random(86);
  int problems = 0, as_graph = 0, tight = 0;
  for (int n = 0; n < 200; ++n) {
    Tiny made = tiny(random);
    test::add_branches(random, made.graph);
    made.job.graph = &made.graph;
    double all_bytes = 0;
    for (const Tensor& tensor : made.graph.tensors) {
      if (tensor.is_parameter) all_bytes += 10 * bytes_of(tensor);
    }
    const bool is_tight = pick(random, 0, 2) == 0;
    if (is_tight) made.system.groups.front().chip.memory.bytes = all_bytes * pick(random, 2, 8) / 8;
    SpaceOptions space;
    space.top = 1000;
    space.recompute = pick(random, 0, 1) == 0 ? Recompute::none : Recompute::full;
    const Outcome all = plan_amp(made.job, made.system, space, {});
    double best_s = std::numeric_limits<double>::infinity();
    for (const Candidate& candidate : all.candidates) {
      const double cost_s = test::amp_cost_s(candidate.plan);
      ASSERT_NEAR(cost_s, test::least_of_assignments(candidate.plan, test::amp_cost_s),
                  1e-9 * cost_s)
          << n;
      ASSERT_TRUE(verify(candidate.plan).holds()) << n;
      best_s = std::min(best_s, cost_s);
      ++problems;
      for (const Stage& stage : candidate.plan.stages) {
        const auto& layers = stage.chunks.front().layers;
        if (layers.back() - layers.front() + 1 == static_cast<int>(layers.size())) continue;
        ++as_graph;
        break;
      }
    }
    tight += is_tight && all.candidates.empty() ? 1 : 0;
    space.top = 1;
    const Outcome one = plan_amp(made.job, made.system, space, {});
    ASSERT_EQ(one.candidates.empty(), all.candidates.empty()) << n;
    if (one.candidates.empty()) continue;
    ASSERT_NEAR(one.objective, best_s, 1e-9 * best_s) << n;
    EXPECT_EQ(one.status, Status::optimal);
    for (const auto plan : {plan_amp_sa, plan_random}) {
      const Outcome other = plan(made.job, made.system, space, {}, {});
      if (!other.candidates.empty()) {
        EXPECT_GE(other.objective, one.objective * (1 - 1e-12)) << n;
      }
    }
  }
  EXPECT_GT(problems, 400);
  EXPECT_GT(as_graph, 20);
  EXPECT_GT(tight, 1);
}

TEST(AmpPlanner, KeepsToTheRestrictionsGiven) {
  std::mt19937_64 random(82);
  const Graph graph = test::tiny_graph(random, 6);
  System system = test::tiny_system(random, 8, 1e12);
  Job job;
  job.graph = &graph;
  job.global_batch = 16;
  SpaceOptions space;
  space.pp = 4;
  space.micro_batch = 2;
  space.top = 3;
  const Outcome outcome = plan_amp(job, system, space, {});
  ASSERT_FALSE(outcome.candidates.empty());
  EXPECT_LE(outcome.candidates.size(), 3U);
  for (const Candidate& candidate : outcome.candidates) {
    EXPECT_EQ(candidate.plan.parallel.pp, 4);
    EXPECT_EQ(candidate.plan.parallel.micro_batch, 2);
    EXPECT_EQ(candidate.plan.planner, "amp");
  }
  space = {};
  space.vp = 2;
  EXPECT_THROW(plan_amp(job, system, space, {}), Error);
  system.groups.push_back(system.groups.front());
  EXPECT_THROW(plan_amp(job, system, {}, {}), Error);
}

TEST(AmpPlanner, StopsWhenTheBudgetIsSpent) {
  std::mt19937_64 random(83);
  const Graph graph = test::tiny_graph(random, 4);
  const System system = test::tiny_system(random, 8, 1e12);
  Job job;
  job.graph = &graph;
  job.global_batch = 8;
  for (const auto plan : {plan_amp, plan_amp_sa, plan_random}) {
    EXPECT_LE(plan(job, system, {}, {.work = 3}, {}).work, 3);
  }
  const System full = test::tiny_system(random, 8, 1);
  EXPECT_EQ(plan_random(job, full, {}, {.work = 3}, {}).status, Status::budget_exhausted);
  EXPECT_EQ(plan_amp(job, full, {}, {}, {}).status, Status::infeasible);
}

}  // namespace
}  // namespace braid
