#include <limits>
#include <map>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "braid/planners/phaze/objective.h"
#include "braid/planners/registry.h"

#include "planners/plan_objectives.h"
#include "planners/tiny_job.h"
#include "planners/two_kinds.h"

namespace braid {
namespace {

using test::pick;

/// By planner, but for the exhaustive one, which has tests of its own, and on mixed clusters
/// graphpipe, which nothing is held against there.
using Outcomes = std::map<std::string, Outcome>;

Outcomes outcomes(const Job& job, const System& system, const SpaceOptions& space) {
  Outcomes found;
  for (const PlannerEntry& entry : planners()) {
    if (entry.name == "exhaustive") continue;
    if (entry.name == "graphpipe" && !is_homogeneous(system)) continue;
    found.emplace(entry.name, entry.plan(job, system, space, {}, {}));
  }
  return found;
}

struct Containment {
  const char* part;
  const char* whole;
};

/// Spaces within spaces, searched for the same objective: Piper's time per sample.
constexpr Containment kOfPiper[] = {
    {"no-dp", "piper"},      {"no-tp", "piper"},      {"no-ar", "piper"},
    {"equi", "piper"},       {"equi-no-tp", "piper"}, {"dp-only", "piper"},
    {"tp-only", "piper"},    {"pipedream", "piper"},  {"pipedream", "no-tp"},
    {"equi-no-tp", "no-tp"}, {"equi-no-tp", "equi"},  {"dp-only", "no-tp"},
    {"tp-only", "no-dp"},    {"pipedream", "no-ar"},
};

/// Planners that go through all of their space: fixing a degree leaves a part of it.
constexpr const char* kThorough[] = {"amp",   "phaze", "piper",      "no-dp",   "no-tp",
                                     "no-ar", "equi",  "equi-no-tp", "dp-only", "tp-only"};

void expect_no_better(const Outcome& part, const Outcome& whole, const std::string& what) {
  if (part.candidates.empty()) return;
  ASSERT_FALSE(whole.candidates.empty()) << what;
  ASSERT_GE(part.objective, whole.objective * (1 - 1e-9)) << what;
}

/// By the simulated time every plan of one form throughout on all devices is in braid's space.
/// Returns how many were held against a proven optimum.
int expect_braid_to_be_best(const Outcomes& all, const std::string& what) {
  const Outcome& braid = all.at("braid");
  int held = 0;
  for (const auto& [name, outcome] : all) {
    if (outcome.candidates.empty()) continue;
    const Candidate& best = outcome.candidates.front();
    const double time_s = best.metrics.iteration_time_s;
    EXPECT_GE(time_s, outcome.physical_bound.time_s * (1 - 1e-9)) << what << name;
    if (!is_uniform(best.plan) || devices_used(best.plan) < best.plan.system.device_count) continue;
    EXPECT_FALSE(braid.candidates.empty()) << what << name;
    EXPECT_GE(time_s, braid.search_bound_s * (1 - 1e-9)) << what << name;
    if (braid.status != Status::optimal) continue;
    EXPECT_GE(time_s, braid.objective * (1 - 1e-9)) << what << name;
    ++held;
  }
  return held;
}

/// Whether AMP's planners have the plan in their space, and in what order of axes.
bool is_of_amp(const Plan& plan) {
  const Parallelism& form = plan.parallel;
  return is_uniform(plan) && form.schedule == ScheduleKind::one_f_one_b && form.vp == 1 &&
         form.cp == 1 && form.ep == 1 && !form.sequence_parallel &&
         form.recompute != Recompute::selective && form.zero <= Zero::optimizer &&
         !form.offload_optimizer && !form.offload_weights && !form.offload_activations &&
         form.tp <= plan.system.groups.front().devices_per_node &&
         devices_used(plan) == plan.system.device_count;
}

/// By their own objectives no plan of that space is better than what amp and phaze find, whoever
/// made it. Returns how many were held against them.
int expect_amp_and_phaze_to_be_best(const Outcomes& all, const std::string& what) {
  int held = 0;
  for (const auto& [name, outcome] : all) {
    if (outcome.candidates.empty()) continue;
    const Plan& plan = outcome.candidates.front().plan;
    if (!is_of_amp(plan)) continue;
    const Outcome &amp = all.at("amp"), &phaze = all.at("phaze");
    EXPECT_FALSE(amp.candidates.empty()) << what << name;
    EXPECT_GE(test::amp_cost_s(plan), amp.search_bound_s * (1 - 1e-9)) << what << name;
    EXPECT_EQ(amp.status, Status::optimal) << what;
    ++held;
    if (plan.parallel.order.back() != Axis::pp) continue;
    EXPECT_FALSE(phaze.candidates.empty()) << what << name;
    EXPECT_GE(test::phaze_time_s(plan, PhazeObjective::flush), phaze.search_bound_s * (1 - 1e-9))
        << what << name;
    EXPECT_EQ(phaze.status, Status::optimal) << what;
  }
  return held;
}

/// Whatever the job.
void expect_parts_to_be_no_better(const Outcomes& all, const std::string& what) {
  for (const auto& [part, whole] : kOfPiper) {
    expect_no_better(all.at(part), all.at(whole), what + part + " " + whole);
  }
  for (const char* sample : {"amp-sa", "random"}) {
    expect_no_better(all.at(sample), all.at("amp"), what + sample);
  }
}

/// What is left of a thorough planner's space with a degree fixed.
void expect_restrictions_to_be_no_better(const Job& job, const System& system, bool fix_tp,
                                         const Outcomes& all, const std::string& what) {
  SpaceOptions restricted;
  (fix_tp ? restricted.tp : restricted.micro_batch) = 1;
  for (const char* name : kThorough) {
    expect_no_better(find_planner(name).plan(job, system, restricted, {}, {}), all.at(name),
                     what + name + " restricted");
  }
}

/// Plans that were held against a planner whose space contains theirs.
struct Held {
  int by_braid = 0, by_amp = 0;
};

/// A job of the model on a small random system.
void expect_no_smaller_space_to_win(std::mt19937_64& random, const Graph& graph, int n,
                                    Held& held) {
  const System system = test::tiny_system(
      random, pick(random, 1, 4), pick(random, 0, 1) == 0 ? 1e12 : 1e6 * pick(random, 1, 20));
  Job job;
  job.graph = &graph;
  job.global_batch = 1L << pick(random, 0, 3);
  const std::string what = std::to_string(n) + " ";
  const Outcomes all = outcomes(job, system, {});
  held.by_braid += expect_braid_to_be_best(all, what);
  held.by_amp += expect_amp_and_phaze_to_be_best(all, what);
  expect_parts_to_be_no_better(all, what);
  if (n % 4 < 2) expect_restrictions_to_be_no_better(job, system, n % 2 == 0, all, what);
}

/// Chains of small layers on fast and slow networks, with memory that often binds, planned by the
/// functions that `braid compare` calls.
class Compare : public ::testing::TestWithParam<unsigned> {};

TEST_P(Compare, NoSmallerSpaceWinsUnderTheSameObjective) {
  std::mt19937_64 random(GetParam());
  Held held;
  for (int n = 0; n < 130; ++n) {
    const Graph graph = test::tiny_graph(random, pick(random, 1, 4));
    expect_no_smaller_space_to_win(random, graph, n, held);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(held.by_braid, 300);
  EXPECT_GT(held.by_amp, 300);
}

/// The same where layers branch, which planners cut as graphs.
TEST_P(Compare, NorWhereLayersBranch) {
  std::mt19937_64 random(GetParam());
  Held held;
  for (int n = 0; n < 30; ++n) {
    Graph graph = test::tiny_graph(random, pick(random, 3, 5));
    test::add_branches(random, graph);
    expect_no_smaller_space_to_win(random, graph, n, held);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(held.by_braid, 40);
  EXPECT_GT(held.by_amp, 40);
}

/// And on two kinds of devices, where those that plan for one kind plan for the slowest.
TEST_P(Compare, NorOnMixedClusters) {
  std::mt19937_64 random(GetParam());
  int planned = 0;
  for (int n = 0; n < 12; ++n) {
    Graph graph = test::tiny_graph(random, pick(random, 2, 4));
    if (n % 2 == 0) test::add_branches(random, graph);
    const System system = test::two_kinds(
        random, 1, pick(random, 1, 2), pick(random, 0, 1) == 0 ? 1e12 : 1e6 * pick(random, 1, 20));
    Job job;
    job.graph = &graph;
    job.global_batch = system.device_count * pick(random, 1, 2);
    const std::string what = std::to_string(n) + " mixed ";
    const Outcomes all = outcomes(job, system, {});
    planned += all.at("amp").candidates.empty() ? 0 : 1;
    expect_parts_to_be_no_better(all, what);
    expect_restrictions_to_be_no_better(job, system, n % 4 < 2, all, what);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(planned, 6);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Compare, ::testing::Range(91U, 99U));

/// The planners that may take long say how far they are.
TEST(Planners, TellHowFarTheyAre) {
  std::mt19937_64 random(21);
  Graph graph = test::tiny_graph(random, 6);
  Job job;
  job.graph = &graph;
  job.global_batch = 16;
  const System one_kind = test::tiny_system(random, 8, 1e12);
  const System mixed = test::two_kinds(random, 2, 2, 1e12);
  for (const char* name : {"braid", "exhaustive", "piper", "phaze", "graphpipe", "amp"}) {
    const std::string planner = name;
    const System& system = planner == "amp" ? mixed : one_kind;
    int calls = 0;
    double last_s = std::numeric_limits<double>::infinity();
    const Progress progress = [&](double best_s, double bound_s, std::int64_t work) {
      ++calls;
      EXPECT_LE(best_s, last_s) << planner;
      EXPECT_LE(bound_s, best_s) << planner;
      EXPECT_GE(work, 0) << planner;
      last_s = best_s;
    };
    const Outcome outcome = find_planner(planner).plan(job, system, {}, {}, progress);
    EXPECT_FALSE(outcome.candidates.empty()) << planner;
    EXPECT_GT(calls, 0) << planner;
  }
}

}  // namespace
}  // namespace braid
