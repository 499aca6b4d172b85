#include <algorithm>
#include <map>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "braid/planners/planner.h"

#include "planners/tiny_job.h"

namespace braid {
namespace {

using testing::pick;

/// Every planner but the exhaustive one, which has tests of its own.
std::map<std::string, Outcome> outcomes(const Job& job, const System& system) {
  std::map<std::string, Outcome> found;
  for (const PlannerEntry& entry : planners()) {
    if (entry.name == "exhaustive") continue;
    found.emplace(entry.name, entry.plan(job, system, {}, {}, {}));
  }
  return found;
}

/// Whether braid's space has such plans: the same degrees for all stages.
bool uniform(const Plan& plan) {
  return std::all_of(plan.stages.begin(), plan.stages.end(), [&](const Stage& stage) {
    return stage.dp == plan.stages.front().dp && stage.tp == plan.stages.front().tp;
  });
}

/// With chains of small layers, fast and slow networks, memory that often binds.
TEST(Compare, NoSmallerSpaceWinsUnderTheSameObjective) {
  std::mt19937_64 random(91);
  int planned = 0;
  for (int n = 0; n < 40; ++n) {
    const Graph graph = testing::tiny_graph(random, pick(random, 1, 5));
    const System system =
        testing::tiny_system(random, 1 << pick(random, 0, 3),
                             pick(random, 0, 1) == 0 ? 1e12 : 1e6 * pick(random, 1, 20));
    Job job;
    job.graph = &graph;
    job.global_batch = 1L << pick(random, 0, 4);
    const std::map<std::string, Outcome> all = outcomes(job, system);
    const Outcome& braid = all.at("braid");
    const Outcome& piper = all.at("piper");
    for (const auto& [name, outcome] : all) {
      if (outcome.candidates.empty()) continue;
      const Candidate& best = outcome.candidates.front();
      ASSERT_GE(best.metrics.iteration_time_s, outcome.physical_bound.time_s * (1 - 1e-9)) << name;
      // The simulated time: every plan of one degree for all stages is in braid's space.
      ASSERT_FALSE(braid.candidates.empty()) << n << " " << name;
      if (uniform(best.plan)) {
        ASSERT_GE(best.metrics.iteration_time_s, braid.search_bound_s * (1 - 1e-9))
            << n << " " << name;
      }
      if (uniform(best.plan) && braid.status == Status::optimal) {
        ASSERT_GE(best.metrics.iteration_time_s, braid.objective * (1 - 1e-9)) << n << " " << name;
        ++planned;
      }
    }
    // Piper's time per sample, over parts of its space.
    for (const char* part :
         {"no-dp", "no-tp", "no-ar", "equi", "equi-no-tp", "dp-only", "tp-only"}) {
      const Outcome& other = all.at(part);
      if (other.candidates.empty()) continue;
      ASSERT_FALSE(piper.candidates.empty()) << n << " " << part;
      ASSERT_GE(other.objective, piper.objective * (1 - 1e-9)) << n << " " << part;
    }
    // AMP's cost of its own strategies: the searches at random try both orders of the axes.
    const Outcome& amp = all.at("amp");
    for (const char* sample : {"amp-sa", "random"}) {
      const Outcome& other = all.at(sample);
      if (other.candidates.empty()) continue;
      ASSERT_FALSE(amp.candidates.empty()) << n << " " << sample;
      if (other.candidates.front().plan.parallel.order !=
          amp.candidates.front().plan.parallel.order) {
        continue;
      }
      ASSERT_GE(other.objective, amp.objective * (1 - 1e-9)) << n << " " << sample;
    }
  }
  EXPECT_GT(planned, 100);
}

}  // namespace
}  // namespace braid
