#include "braid/chip/cores/core_problem.h"

#include <string>

#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/base/infinity.h"

namespace braid {
namespace {

std::string complaint(const CoreProblem& problem) {
  try {
    check_core_problem(problem, "layer.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

CoreProblem two_operators() {
  return {.operators = {{CoreKind::tensor, 2, 1}, {CoreKind::fused, 2, 1}},
          .edges = {{0, 1}},
          .cores = {1, 1}};
}

TEST(CoreProblem, SaysWhatIsWrong) {
  EXPECT_EQ(complaint(two_operators()), "");

  CoreProblem problem = two_operators();
  problem.cores.tensor = 0;
  EXPECT_EQ(
      complaint(problem),
      "layer.json: operators[0]: needs a tensor core and the chip has none; give the chip tensor "
      "cores, or run it on vector cores");
  problem = two_operators();
  problem.cores.vector = 0;
  EXPECT_EQ(
      complaint(problem),
      "layer.json: operators[1]: needs a vector core and the chip has none; give the chip vector "
      "cores");
  problem = two_operators();
  problem.operators[0].one_core_s = kInfinity;
  EXPECT_EQ(
      complaint(problem),
      "layer.json: operators[0]: takes inf s on one core and 1 s on all; give times of 0 or more "
      "that are finite");
  problem = two_operators();
  problem.operators[1].all_cores_s = -1;
  EXPECT_EQ(
      complaint(problem),
      "layer.json: operators[1]: takes 2 s on one core and -1 s on all; give times of 0 or more "
      "that are finite");
  problem = two_operators();
  problem.operators[0].kind = CoreKind::none;
  EXPECT_EQ(
      complaint(problem),
      "layer.json: operators[0]: takes time and runs on no kind of core; say whether it needs "
      "tensor cores, vector cores or both");
  problem = two_operators();
  problem.edges.emplace_back(1, 2);
  EXPECT_EQ(
      complaint(problem),
      "layer.json: edges[1]: leads from operator 1 to operator 2 of 2; operators count from 0");
  problem = two_operators();
  problem.edges.emplace_back(1, 0);
  EXPECT_EQ(
      complaint(problem),
      "layer.json: edges: 2 operators wait for each other in a cycle or behind one; take out an "
      "edge of each cycle");
}

}  // namespace
}  // namespace braid
