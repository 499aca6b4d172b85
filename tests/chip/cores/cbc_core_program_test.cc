#include <random>
#include <string>

#include <gtest/gtest.h>

#include "braid/chip/cores/schedule_cores.h"

#include "chip/cores/core_problems.h"
#include "chip/cores/core_program.h"

namespace braid {
namespace {

// scripts/check-core-programs.sh does the same for a thousand larger graphs.
TEST(CbcCoreProgram, AgreesOnPhazesProgram) {
  if (!has_cbc()) GTEST_SKIP() << "cbc is not installed";
  std::mt19937_64 dice(13);
  for (int round = 0; round < 24; ++round) {
    CoreDice like;
    like.operators = 3 + round % 4;
    like.most_cores = 3;
    like.most_time = 30;
    like.density = 0.3;
    const CoreProblem problem = random_core_problem(dice, like);
    const auto best = solve_core_program(problem, "core_program_" + std::to_string(round));
    ASSERT_TRUE(best.has_value()) << "round " << round;
    EXPECT_NEAR(schedule_cores(problem).schedule.makespan_s, *best, 1e-5) << "round " << round;
  }
}

}  // namespace
}  // namespace braid
