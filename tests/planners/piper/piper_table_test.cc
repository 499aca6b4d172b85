#include <cmath>

#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/planners/piper/table.h"

#include "planners/piper_oracle.h"

namespace braid {
namespace {

TEST(PiperTable, AgreesWithBruteForceEverywhere) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 1500; ++i) {
    const PiperProblem problem = random_piper_problem(random, {.whole_numbers = i % 2 == 0});
    const PiperTable table = piper_table(problem);
    const auto expected = brute_force_table(problem);
    ASSERT_EQ(table.devices, static_cast<std::int64_t>(expected.size()));
    for (std::int64_t k = 1; k <= table.devices; ++k) {
      for (std::int64_t s = 1; s <= table.suffixes; ++s) {
        const double best =
            expected[static_cast<std::size_t>(k - 1)][static_cast<std::size_t>(s - 1)];
        if (std::isinf(best)) {
          ASSERT_EQ(table.at(k, s), best) << i << ": " << k << ", " << s;
        } else {
          ASSERT_NEAR(table.at(k, s), best, 1e-9 * best) << i << ": " << k << ", " << s;
        }
      }
    }
  }
}

TEST(PiperTable, EndsWithWhatTheSearchFinds) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 100; ++i) {
    const PiperProblem problem =
        random_piper_problem(random, {.most_nodes = 7, .most_devices = 20});
    const PiperSolution solution = solve_piper(problem);
    const PiperTable table = piper_table(problem);
    const double last = table.at(table.devices, table.suffixes);
    if (solution.status == Status::infeasible) {
      EXPECT_TRUE(std::isinf(last)) << i;
    } else {
      EXPECT_NEAR(last, solution.time, 1e-9 * solution.time) << i;
    }
  }
}

TEST(PiperTable, RefusesWhatIsTooLarge) {
  std::mt19937_64 random(3);
  PiperProblem problem = random_piper_problem(random, {});
  problem.rules.knapsack = PiperKnapsack::heuristic;
  EXPECT_THROW(piper_table(problem), Error);
  problem.rules.knapsack = PiperKnapsack::exact;
  problem.devices = problem.micro_batches = 100'000;
  EXPECT_THROW(piper_table(problem), Error);
}

}  // namespace
}  // namespace braid
