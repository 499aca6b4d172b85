#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "braid/planners/registry.h"
#include "braid/planners/uniform/uniform_planner.h"

#include "planners/tiny_decoder.h"
#include "planners/tiny_job.h"

namespace braid {
namespace {

using test::pick;

/// What some trainer refuses: one to three traits, of which some have to be missing.
ExcludedForms random_rule(std::mt19937_64& random) {
  ExcludedForms rule;
  const int count = pick(random, 1, 3);
  for (int i = 0; i < count; ++i) {
    const auto trait = static_cast<FormTrait>(pick(random, 0, std::ssize(kFormTraits) - 1));
    (pick(random, 0, 2) == 0 ? rule.without : rule.with) |= bit_of(trait);
  }
  rule.without &= ~rule.with;
  return rule;
}

// What a trainer refuses is left out by whole families of configurations: none may go with them
// that it takes.
TEST(ExcludedForms, AsManyAsThereAreTheBestOfTheRestIsFound) {
  std::mt19937_64 random(911);
  int planned = 0, with_experts = 0, none = 0;
  for (int trial = 0; trial < 250; ++trial) {
    const Graph graph = test::tiny_decoder(random, true);
    const System system = test::tiny_system(
        random, 1 << pick(random, 1, 3), pick(random, 0, 1) == 0 ? 1e12 : 5e6 * pick(random, 1, 9));
    Job job;
    job.graph = &graph;
    job.global_batch = 1L << pick(random, 0, 4);
    SpaceOptions space;
    space.all_devices = true;
    const int rules = pick(random, 1, 4);
    for (int i = 0; i < rules; ++i) space.can.never.push_back(random_rule(random));
    const Outcome all = plan_exhaustively(job, system, space, {}, {});
    const Outcome found = plan_braid(job, system, space, {});
    ASSERT_EQ(found.candidates.empty(), all.candidates.empty()) << trial;
    if (all.candidates.empty()) {
      ++none;
      continue;
    }
    ++planned;
    const double least_s = all.candidates.front().metrics.iteration_time_s;
    EXPECT_LE(found.candidates.front().metrics.iteration_time_s, least_s * (1 + 1e-12)) << trial;
    with_experts += all.candidates.front().plan.parallel.ep > 1 ? 1 : 0;
  }
  EXPECT_GT(planned, 100);
  EXPECT_GT(with_experts, 20);
  EXPECT_GT(none, 5);
}

}  // namespace
}  // namespace braid
