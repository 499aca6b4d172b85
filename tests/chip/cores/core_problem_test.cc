#include "braid/chip/cores/core_problem.h"

#include <gtest/gtest.h>

#include "braid/base/infinity.h"

namespace braid {
namespace {

CoreProblem two_operators() {
  return {.operators = {{CoreKind::tensor, 2, 1}, {CoreKind::fused, 2, 1}},
          .edges = {{0, 1}},
          .cores = {1, 1}};
}

TEST(CoreProblem, IsValidWhereItCanBeScheduled) {
  EXPECT_TRUE(is_valid(two_operators()));
  EXPECT_TRUE(is_valid({}));
  const auto with = [](auto change) {
    CoreProblem problem = two_operators();
    change(problem);
    return is_valid(problem);
  };
  EXPECT_FALSE(with([](CoreProblem& problem) { problem.cores.tensor = 0; }));
  EXPECT_FALSE(with([](CoreProblem& problem) { problem.cores.vector = 0; }));
  EXPECT_FALSE(with([](CoreProblem& problem) { problem.operators[0].one_core_s = kInfinity; }));
  EXPECT_FALSE(with([](CoreProblem& problem) { problem.operators[1].all_cores_s = -1; }));
  EXPECT_FALSE(with([](CoreProblem& problem) { problem.operators[0].kind = CoreKind::none; }));
  EXPECT_TRUE(with([](CoreProblem& problem) { problem.operators[0] = {CoreKind::none, 0, 0}; }));
  EXPECT_FALSE(with([](CoreProblem& problem) { problem.edges.emplace_back(1, 2); }));
  EXPECT_FALSE(with([](CoreProblem& problem) { problem.edges.emplace_back(-1, 0); }));
  EXPECT_FALSE(with([](CoreProblem& problem) { problem.edges.emplace_back(1, 0); }));
}

}  // namespace
}  // namespace braid
