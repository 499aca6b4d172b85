#include <random>
#include <string>

#include <gtest/gtest.h>

#include "braid/chip/cores/check_core_schedule.h"
#include "braid/chip/cores/schedule_cores.h"

#include "chip/cores/core_problems.h"
#include "chip/cores/every_core_schedule.h"

namespace braid {
namespace {

void expect_least(const CoreProblem& problem, const std::string& which) {
  const CoreOutcome outcome = schedule_cores(problem);
  const auto faults = check_core_schedule(problem, outcome.schedule);
  EXPECT_TRUE(faults.empty()) << which << ": " << faults.front();
  EXPECT_EQ(outcome.status, CoreStatus::optimal) << which;
  EXPECT_EQ(outcome.schedule.makespan_s, least_core_makespan(problem)) << which;
}

TEST(CoreSchedule, IsTheBestOfAll) {
  std::mt19937_64 dice(3);
  for (int round = 0; round < 1500; ++round) {
    CoreDice like;
    like.operators = 1 + static_cast<int>(dice() % 6);
    like.most_cores = 3;
    like.density = 0.1 * static_cast<double>(dice() % 5);
    like.fused = round % 3 > 0;
    like.rule = round % 2 == 0 ? AllCoresRule::alone : AllCoresRule::own_kind;
    expect_least(random_core_problem(dice, like), "round " + std::to_string(round));
  }
}

}  // namespace
}  // namespace braid
