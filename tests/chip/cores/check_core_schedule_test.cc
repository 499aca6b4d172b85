#include "chip/cores/check_core_schedule.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace braid {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// A tensor operator, then a fused one beside a vector one, then one on all vector cores.
struct Example {
  CoreProblem problem{.operators = {{CoreKind::tensor, 3, 1},
                                    {CoreKind::fused, 2, 1},
                                    {CoreKind::vector, 2, 1},
                                    {CoreKind::vector, 4, 1}},
                      .edges = {{0, 1}, {1, 3}},
                      .cores = {2, 2}};
  CoreSchedule schedule{.operators = {{0, 3, false, 1, -1},
                                      {3, 5, false, 0, 0},
                                      {3, 5, false, -1, 1},
                                      {5, 6, true, -1, -1}},
                        .makespan_s = 6};
  std::vector<std::string> faults() const { return check_core_schedule(problem, schedule); }
  PlacedOperator& at(std::size_t i) { return schedule.operators[i]; }
};

TEST(CheckCoreSchedule, AcceptsWhatIsRight) { EXPECT_THAT(Example().faults(), IsEmpty()); }

TEST(CheckCoreSchedule, FindsWhatIsWrong) {
  Example early;
  early.at(1).start_s = 2.5;
  early.at(1).end_s = 4.5;
  EXPECT_THAT(early.faults(), ElementsAre("operator 1 starts before operator 0 has ended"));

  Example negative;
  negative.at(0).start_s = -1;
  negative.at(0).end_s = 2;
  EXPECT_THAT(negative.faults(), ElementsAre("operator 0 starts before 0"));

  Example length;
  length.at(2).end_s = 4;
  EXPECT_THAT(length.faults(), ElementsAre("operator 2 takes another time than 2 s"));

  Example end;
  end.schedule.makespan_s = 7;
  EXPECT_THAT(end.faults(), ElementsAre("the last operator ends at 6 s, not at 7 s"));

  Example shared;
  shared.at(2).vector_core = 0;
  EXPECT_THAT(shared.faults(), ElementsAre("operators 1 and 2 run at once and must not"));

  Example parted;
  parted.at(1).tensor_core = 1;
  EXPECT_THAT(parted.faults(), ElementsAre("operator 1 is on two cores that are no pair"));

  Example wrong_kind;
  wrong_kind.at(2) = {3, 5, false, 1, 1};
  EXPECT_THAT(wrong_kind.faults(), ElementsAre("operator 2 is on tensor core 1"));

  Example no_core;
  no_core.at(0).tensor_core = 2;
  EXPECT_THAT(no_core.faults(), ElementsAre("operator 0 is on tensor core 2"));

  Example nowhere;
  nowhere.at(2).vector_core = -1;
  EXPECT_THAT(nowhere.faults(), ElementsAre("operator 2 is on vector core -1"));

  Example named;
  named.at(3).vector_core = 0;
  EXPECT_THAT(named.faults(), ElementsAre("operator 3 names a core"));

  Example missing;
  missing.schedule.operators.pop_back();
  EXPECT_THAT(missing.faults(), ElementsAre("another number of operators"));
}

TEST(CheckCoreSchedule, KnowsWhatAnOperatorOnAllCoresKeepsOut) {
  Example beside;  // The vector operator on all cores beside the tensor operator on one.
  beside.problem.edges = {{0, 1}};
  beside.at(3) = {0, 1, true, -1, -1};
  beside.schedule.makespan_s = 5;
  EXPECT_THAT(beside.faults(), ElementsAre("operators 0 and 3 run at once and must not"));
  beside.problem.rule = AllCoresRule::own_kind;
  EXPECT_THAT(beside.faults(), IsEmpty());
  beside.at(3) = {4, 5, true, -1, -1};
  EXPECT_THAT(beside.faults(), ElementsAre("operators 1 and 3 run at once and must not",
                                           "operators 2 and 3 run at once and must not"));
}

}  // namespace
}  // namespace braid
