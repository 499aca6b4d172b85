#include "braid/planners/piper_variants.h"

#include <map>
#include <string>

#include <gtest/gtest.h>

#include "planners/piper_oracle.h"

namespace braid {
namespace {

/// No planner of a smaller space beats piper under the same objective, whatever the rules, and what
/// any of them finds is a solution of piper's problem.
TEST(PiperVariants, NoSmallerSpaceBeatsPiper) {
  std::mt19937_64 random(31);
  std::map<std::string_view, int> found;
  int slower = 0;
  for (int trial = 0; trial < 600; ++trial) {
    RandomPiper what;
    what.whole_numbers = trial % 2 == 0;
    what.recompute_pairs = trial % 3 == 0;
    PiperProblem problem = random_piper_problem(random, what);
    problem.rules.knapsack = PiperKnapsack::exact;
    problem.one_stage = false;
    const PiperSolution best = solve_piper(problem);
    for (const PiperVariant& variant : piper_variants()) {
      const PiperSolution solution = variant.solve(problem, {});
      if (solution.stages.empty()) continue;
      ASSERT_FALSE(best.stages.empty()) << variant.name << " in trial " << trial;
      EXPECT_GE(solution.time, best.time * (1 - 1e-9)) << variant.name << " in trial " << trial;
      EXPECT_EQ(fault_of(problem, solution), "") << variant.name << " in trial " << trial;
      ++found[variant.name];
      if (solution.time > best.time * (1 + 1e-9)) ++slower;
    }
    if (HasFailure()) return;
  }
  EXPECT_EQ(found.size(), piper_variants().size());
  for (const auto& [name, times] : found) EXPECT_GT(times, 10) << name;
  EXPECT_GT(slower, 50);
}

}  // namespace
}  // namespace braid
