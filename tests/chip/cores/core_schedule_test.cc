#include <algorithm>
#include <cstddef>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "braid/base/rounding.h"
#include "braid/chip/cores/schedule_cores.h"

#include "chip/cores/check_core_schedule.h"
#include "chip/cores/core_problems.h"
#include "chip/cores/every_core_schedule.h"

namespace braid {
namespace {

CoreOutcome checked_schedule(const CoreProblem& problem, const std::string& which,
                             std::int64_t work = kCoreWork) {
  CoreOutcome outcome = schedule_cores(problem, work);
  const auto faults = check_core_schedule(problem, outcome.schedule);
  EXPECT_TRUE(faults.empty()) << which << ": " << faults.front();
  EXPECT_LE(outcome.bound_s, outcome.schedule.makespan_s) << which;
  EXPECT_EQ(outcome.status == CoreStatus::optimal,
            is_proven(outcome.bound_s, outcome.schedule.makespan_s))
      << which;
  return outcome;
}

double least_makespan(const CoreProblem& problem, const std::string& which) {
  const CoreOutcome outcome = checked_schedule(problem, which);
  EXPECT_EQ(outcome.status, CoreStatus::optimal) << which;
  return outcome.schedule.makespan_s;
}

/// Of all sorts.
CoreProblem problem_of_round(int round, std::mt19937_64& dice, int operators) {
  CoreDice like;
  like.operators = 1 + static_cast<int>(dice() % static_cast<std::uint64_t>(operators));
  like.most_cores = 3;
  like.density = 0.1 * static_cast<double>(dice() % 5);
  like.fused = round % 3 > 0;
  like.rule = round % 2 == 0 ? AllCoresRule::alone : AllCoresRule::own_kind;
  CoreProblem problem = random_core_problem(dice, like);
  if (round % 5 == 0) {  // Few are faster on all cores, so that these are short.
    for (CoreOperator& op : problem.operators) {
      if (op.one_core_s > 0) op.all_cores_s = op.one_core_s + (dice() % 4 == 0 ? -1 : 1);
    }
  }
  return problem;
}

TEST(CoreSchedule, IsTheBestOfAll) {
  std::mt19937_64 dice(3);
  for (int round = 0; round < 1000; ++round) {
    const std::string which = "round " + std::to_string(round);
    const CoreProblem problem = problem_of_round(round, dice, round % 8 == 0 ? 6 : 5);
    EXPECT_EQ(least_makespan(problem, which), least_core_makespan(problem)) << which;
  }
}

// If fused operators could take any tensor core with any vector core, 4 would do: the second one
// starts at 3, on the tensor core of one pair and the vector core of the other.
TEST(CoreSchedule, MindsWhichCoresArePairs) {
  const CoreProblem problem{.operators = {{CoreKind::vector, 3, 99},
                                          {CoreKind::fused, 1, 99},
                                          {CoreKind::fused, 2, 99},
                                          {CoreKind::vector, 2, 99},
                                          {CoreKind::tensor, 4, 99}},
                            .edges = {{0, 1}, {2, 3}},
                            .cores = {2, 2}};
  EXPECT_EQ(least_makespan(problem, "pairs"), 5);
}

TEST(CoreSchedule, MoreCoresAreNeverSlower) {
  std::mt19937_64 dice(5);
  for (int round = 0; round < 60; ++round) {
    const std::string which = "round " + std::to_string(round);
    CoreProblem problem = problem_of_round(round, dice, 9);
    const double before_s = least_makespan(problem, which);
    (round % 4 < 2 ? problem.cores.tensor : problem.cores.vector) += 1;
    EXPECT_LE(least_makespan(problem, which), before_s * kAboveRounding) << which;
  }
}

TEST(CoreSchedule, ShorterOperatorsAreNeverSlower) {
  std::mt19937_64 dice(6);
  for (int round = 0; round < 60; ++round) {
    const std::string which = "round " + std::to_string(round);
    CoreProblem problem = problem_of_round(round, dice, 9);
    const double before_s = least_makespan(problem, which);
    CoreOperator& op = problem.operators[dice() % problem.operators.size()];
    (round % 4 < 2 ? op.one_core_s : op.all_cores_s) /= 2;
    EXPECT_LE(least_makespan(problem, which), before_s * kAboveRounding) << which;
  }
}

TEST(CoreSchedule, AndFewerEdgesAreNeverSlower) {
  std::mt19937_64 dice(7);
  for (int round = 0; round < 60; ++round) {
    const std::string which = "round " + std::to_string(round);
    CoreProblem problem = problem_of_round(round, dice, 9);
    const double before_s = least_makespan(problem, which);
    if (!problem.edges.empty()) problem.edges.pop_back();
    EXPECT_LE(least_makespan(problem, which), before_s * kAboveRounding) << which;
  }
}

// What runs beside an operator that is spread over all cores of its kind is no worse than nothing.
TEST(CoreSchedule, AloneIsTheStricterRule) {
  std::mt19937_64 dice(8);
  for (int round = 0; round < 60; ++round) {
    const std::string which = "round " + std::to_string(round);
    CoreProblem problem = problem_of_round(round, dice, 9);
    problem.rule = AllCoresRule::alone;
    const double alone_s = least_makespan(problem, which);
    problem.rule = AllCoresRule::own_kind;
    EXPECT_LE(least_makespan(problem, which), alone_s * kAboveRounding) << which;
  }
}

TEST(CoreSchedule, DoesNotDependOnNumbers) {
  std::mt19937_64 dice(9);
  for (int round = 0; round < 60; ++round) {
    const std::string which = "round " + std::to_string(round);
    const CoreProblem problem = problem_of_round(round, dice, 9);
    std::vector<std::int32_t> place(problem.operators.size());
    std::iota(place.begin(), place.end(), 0);
    std::shuffle(place.begin(), place.end(), dice);
    CoreProblem other = problem;
    for (std::size_t i = 0; i < place.size(); ++i) {
      other.operators[static_cast<std::size_t>(place[i])] = problem.operators[i];
    }
    for (auto& [from, to] : other.edges) {
      from = place[static_cast<std::size_t>(from)];
      to = place[static_cast<std::size_t>(to)];
    }
    std::shuffle(other.edges.begin(), other.edges.end(), dice);
    EXPECT_EQ(least_makespan(other, which), least_makespan(problem, which)) << which;
  }
}

TEST(CoreSchedule, IsTheSameEachTime) {
  std::mt19937_64 dice(10);
  const CoreProblem problem = random_core_problem(dice, {.operators = 30});
  const CoreOutcome first = schedule_cores(problem, 3'000);
  const CoreOutcome second = schedule_cores(problem, 3'000);
  EXPECT_EQ(first.schedule.operators, second.schedule.operators);
  EXPECT_EQ(first.work, second.work);
}

TEST(CoreSchedule, WithLittleWorkIsNoWorseThanTheListAndSaysHowFarOff) {
  std::mt19937_64 dice(12);
  int unproven = 0;
  for (int round = 0; round < 8; ++round) {
    const std::string which = "round " + std::to_string(round);
    CoreDice like;
    like.operators = 30;
    like.most_time = 1000;
    like.density = 0.06;
    like.rule = round % 2 == 0 ? AllCoresRule::alone : AllCoresRule::own_kind;
    const CoreProblem problem = random_core_problem(dice, like);
    const CoreOutcome list = schedule_cores(problem, 0);
    const CoreOutcome little = checked_schedule(problem, which, 500);
    const CoreOutcome more = checked_schedule(problem, which, 2'000);
    EXPECT_LE(little.schedule.makespan_s, list.schedule.makespan_s) << which;
    EXPECT_LE(more.schedule.makespan_s, little.schedule.makespan_s) << which;
    EXPECT_LE(little.bound_s, more.schedule.makespan_s * kAboveRounding) << which;
    if (little.status == CoreStatus::budget_exhausted) ++unproven;
  }
  EXPECT_GT(unproven, 2);
}

TEST(CoreSchedule, OfNothingTakesNoTime) {
  EXPECT_EQ(least_makespan({}, "nothing"), 0);
  const CoreProblem views{.operators = {{}, {}}, .edges = {{1, 0}}, .cores = {0, 0}};
  EXPECT_EQ(least_makespan(views, "views"), 0);
}

}  // namespace
}  // namespace braid
