#include <limits>
#include <map>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "braid/planners/planner.h"

#include "planners/tiny_job.h"
#include "planners/two_kinds.h"

namespace braid {
namespace {

using testing::pick;

/// By planner, but for the exhaustive one, which has tests of its own.
using Outcomes = std::map<std::string, Outcome>;

Outcomes outcomes(const Job& job, const System& system, const SpaceOptions& space) {
  Outcomes found;
  for (const PlannerEntry& entry : planners()) {
    if (entry.name == "exhaustive") continue;
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
    {"tp-only", "no-dp"},
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

/// Chains of small layers on fast and slow networks, with memory that often binds, planned by the
/// functions that `braid compare` calls.
class Compare : public ::testing::TestWithParam<unsigned> {};

TEST_P(Compare, NoSmallerSpaceWinsUnderTheSameObjective) {
  std::mt19937_64 random(GetParam());
  int held = 0;
  for (int n = 0; n < 130; ++n) {
    const Graph graph = testing::tiny_graph(random, pick(random, 1, 4));
    const System system = testing::tiny_system(
        random, pick(random, 1, 4), pick(random, 0, 1) == 0 ? 1e12 : 1e6 * pick(random, 1, 20));
    Job job;
    job.graph = &graph;
    job.global_batch = 1L << pick(random, 0, 3);
    const std::string what = std::to_string(n) + " ";
    const Outcomes all = outcomes(job, system, {});
    held += expect_braid_to_be_best(all, what);
    for (const auto& [part, whole] : kOfPiper) {
      expect_no_better(all.at(part), all.at(whole), what + part + " " + whole);
    }
    for (const char* sample : {"amp-sa", "random"}) {
      expect_no_better(all.at(sample), all.at("amp"), what + sample);
    }
    if (n % 4 > 1) continue;
    SpaceOptions restricted;
    (n % 2 == 0 ? restricted.tp : restricted.micro_batch) = 1;
    for (const char* name : kThorough) {
      expect_no_better(find_planner(name).plan(job, system, restricted, {}, {}), all.at(name),
                       what + name + " restricted");
    }
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(held, 300);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Compare, ::testing::Range(91U, 99U));

/// The planners that may take long say how far they are.
TEST(Planners, TellHowFarTheyAre) {
  std::mt19937_64 random(21);
  Graph graph = testing::tiny_graph(random, 6);
  Job job;
  job.graph = &graph;
  job.global_batch = 16;
  const System one_kind = testing::tiny_system(random, 8, 1e12);
  const System mixed = testing::two_kinds(random, 2, 2, 1e12);
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
