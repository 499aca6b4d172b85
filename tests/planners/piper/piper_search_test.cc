#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/base/infinity.h"
#include "braid/planners/piper/search.h"

#include "planners/piper_oracle.h"

namespace braid {
namespace {

double optimum(const PiperSolution& solution) {
  return solution.status == Status::infeasible ? kInfinity : solution.time;
}

void expect_optimal(const PiperProblem& problem, const std::string& what) {
  check_piper_problem(problem, "random");
  const PiperSolution solution = solve_piper(problem);
  const double best = brute_force_time(problem);
  if (best == kInfinity) {
    ASSERT_EQ(solution.status, Status::infeasible) << what;
    return;
  }
  ASSERT_EQ(solution.status, Status::optimal) << what;
  ASSERT_NEAR(solution.time, best, 1e-9 * best) << what;
  ASSERT_EQ(solution.bound, solution.time) << what;
  ASSERT_EQ(fault_of(problem, solution), "") << what;
}

TEST(PiperSearch, AgreesWithBruteForceOnWholeNumbers) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 9000; ++i) {
    expect_optimal(random_piper_problem(random, {}), "case " + std::to_string(i));
    if (HasFatalFailure()) return;
  }
}

TEST(PiperSearch, AgreesWithBruteForceOnFractions) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 3000; ++i) {
    expect_optimal(random_piper_problem(random, {.whole_numbers = false}),
                   "case " + std::to_string(i));
    if (HasFatalFailure()) return;
  }
}

TEST(PiperSearch, AgreesWithBruteForceOnLargerGraphs) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 150; ++i) {
    expect_optimal(random_piper_problem(random, {.most_nodes = 6, .most_devices = 7}),
                   "case " + std::to_string(i));
    if (HasFatalFailure()) return;
  }
}

TEST(PiperSearch, ExactSumsOfDegreesAgreeWithBruteForce) {
  std::mt19937_64 random(9);
  int slower = 0;
  int infeasible = 0;
  for (int i = 0; i < 1500; ++i) {
    PiperProblem problem = random_piper_problem(random, {.whole_numbers = i % 2 == 0});
    const PiperSolution at_most = solve_piper(problem);
    problem.rules.sum = PiperSum::exact;
    expect_optimal(problem, "case " + std::to_string(i));
    if (HasFatalFailure()) return;
    const PiperSolution exact = solve_piper(problem);
    if (exact.stages.empty()) {
      ++infeasible;
      EXPECT_FALSE(exact.reason.empty() && has_options(problem)) << i;
      continue;
    }
    EXPECT_EQ(exact.stages.front().suffix, problem.micro_batches) << i;
    EXPECT_GE(exact.time, at_most.time * (1 - 1e-9)) << i;
    if (exact.time > at_most.time * (1 + 1e-9)) ++slower;
  }
  EXPECT_GT(slower, 20);
  EXPECT_GT(infeasible, 20);
}

TEST(PiperSearch, HeuristicKnapsackIsThePapers) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 3000; ++i) {
    PiperProblem problem = random_piper_problem(random, {.whole_numbers = false});
    problem.rules.knapsack = PiperKnapsack::heuristic;
    // Options that differ in what they cost at the border have no place in the heuristic's order.
    const PiperSolution solution = solve_piper(problem);
    const double best = brute_force_time(problem);
    if (best == kInfinity) {
      ASSERT_EQ(solution.status, Status::infeasible) << i;
      continue;
    }
    ASSERT_NEAR(solution.time, best, 1e-9 * best) << i;
  }
}

/// Largest sizes at which laws are checked, far beyond brute force.
PiperProblem larger_problem(std::mt19937_64& random) {
  PiperProblem problem =
      random_piper_problem(random, {.most_nodes = 7, .most_devices = 20, .whole_numbers = false});
  problem.micro_batches = 24;
  problem.memory_bytes *= 2;
  return problem;
}

TEST(PiperSearch, MoreResourcesNeverHurt) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 120; ++i) {
    const PiperProblem problem = larger_problem(random);
    const double time = optimum(solve_piper(problem));
    PiperProblem more = problem;
    more.devices += 1 + i % 3;
    EXPECT_LE(optimum(solve_piper(more)), time * (1 + 1e-9)) << "devices " << i;
    more = problem;
    more.memory_bytes *= 1.3;
    EXPECT_LE(optimum(solve_piper(more)), time * (1 + 1e-9)) << "memory " << i;
    more = problem;
    more.bandwidth_bytes *= 1.5;
    EXPECT_LE(optimum(solve_piper(more)), time * (1 + 1e-9)) << "bandwidth " << i;
    // Any more micro-batches help when degrees need not divide them; multiples always do.
    more = problem;
    more.micro_batches = more.rules.split == PiperSplit::ideal ? 25 : 48;
    EXPECT_LE(optimum(solve_piper(more)), time * (1 + 1e-9)) << "micro-batches " << i;
  }
}

TEST(PiperSearch, TellsHowFarItIs) {
  std::mt19937_64 random(15);
  int calls = 0;
  for (int i = 0; i < 60; ++i) {
    PiperProblem problem = larger_problem(random);
    double last = std::numeric_limits<double>::infinity(), last_bound = 0;
    std::int64_t last_work = 0;
    PiperSearchLimits limits;
    limits.progress = [&](double best, double bound, std::int64_t work) {
      ++calls;
      EXPECT_LE(bound, best);
      EXPECT_LE(best, last);
      EXPECT_GE(bound, last_bound);
      EXPECT_GE(work, last_work);
      last = best;
      last_bound = bound;
      last_work = work;
    };
    const PiperSolution solution = solve_piper(problem, limits);
    if (!solution.stages.empty()) {
      EXPECT_EQ(last, solution.time) << i;
    }
    EXPECT_EQ(solution.stages, solve_piper(problem).stages) << i;
  }
  EXPECT_GT(calls, 100);
}

TEST(PiperSearch, ScalesWithItsUnits) {
  std::mt19937_64 random(6);
  for (int i = 0; i < 100; ++i) {
    const PiperProblem problem = larger_problem(random);
    PiperProblem scaled = problem;
    scaled.memory_bytes *= 1024;
    scaled.bandwidth_bytes *= 1024.0 / 8;
    for (PiperEdge& edge : scaled.edges) edge.bytes *= 1024;
    for (PiperNode& node : scaled.nodes) {
      for (PiperDegree& degree : node.degrees) {
        for (PiperOption& option : degree.options) {
          option.time *= 8;
          option.parameter_bytes *= 1024;
          option.in_flight_bytes *= 1024;
          option.fixed_bytes *= 1024;
          for (double& bytes : option.in_sync_bytes) bytes *= 1024;
          for (double& bytes : option.out_sync_bytes) bytes *= 1024;
        }
      }
    }
    const PiperSolution a = solve_piper(problem), b = solve_piper(scaled);
    ASSERT_EQ(a.status, b.status) << i;
    ASSERT_NEAR(a.time * 8, b.time, 1e-9 * b.time) << i;
  }
}

TEST(PiperSearch, LayerNumbersDoNotMatter) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 100; ++i) {
    PiperProblem problem = larger_problem(random);
    problem.rules.tensors = PiperTensors::per_edge;  // "once" charges the first reader's re-layout.
    const PiperProblem other = relabelled(problem, random);
    const PiperSolution a = solve_piper(problem), b = solve_piper(other);
    ASSERT_EQ(a.status, b.status) << i;
    ASSERT_NEAR(a.time, b.time, 1e-9 * a.time) << i;
  }
}

TEST(PiperSearch, RestrictionsNeverHelp) {
  std::mt19937_64 random(8);
  for (int i = 0; i < 100; ++i) {
    const PiperProblem problem = larger_problem(random);
    const double time = optimum(solve_piper(problem));
    PiperProblem less = problem;
    less.most_dp = 1;
    EXPECT_GE(optimum(solve_piper(less)), time * (1 - 1e-9)) << i;
    less = problem;
    less.one_stage = true;
    EXPECT_GE(optimum(solve_piper(less)), time * (1 - 1e-9)) << i;
    less = problem;
    less.rules.knapsack = PiperKnapsack::heuristic;
    EXPECT_GE(optimum(solve_piper(less)), time * (1 - 1e-9)) << i;
    less = problem;
    less.rules.tensors = PiperTensors::per_edge;
    EXPECT_GE(optimum(solve_piper(less)), time * (1 - 1e-9)) << i;
  }
}

TEST(PiperSearch, StopsWhenItsWorkIsUsedUp) {
  std::mt19937_64 random(9);
  for (int i = 0; i < 100; ++i) {
    const PiperProblem problem = larger_problem(random);
    const PiperSolution all = solve_piper(problem);
    const PiperSolution some = solve_piper(problem, {.work = 40});
    if (some.status == Status::optimal || some.status == Status::infeasible) {
      EXPECT_EQ(some.status, all.status) << i;
      continue;
    }
    if (some.status == Status::feasible) {
      EXPECT_GE(some.time, all.time * (1 - 1e-9)) << i;
      EXPECT_LE(some.bound, all.time * (1 + 1e-9)) << i;
      EXPECT_EQ(fault_of(problem, some), "") << i;
    }
  }
}

PiperProblem one_layer() {
  PiperProblem problem;
  PiperOption option;
  option.time = 4;
  problem.nodes = {{"only", {{1, {option}}}}};
  problem.devices = 2;
  problem.micro_batches = 2;
  problem.memory_bytes = 10;
  problem.bandwidth_bytes = 1;
  return problem;
}

std::string complaint(const PiperProblem& problem) {
  try {
    check_piper_problem(problem, "file");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(PiperProblem, RefusesWhatMakesNoSense) {
  EXPECT_EQ(complaint(one_layer()), "");
  const double nan = std::nan("");
  PiperProblem bad = one_layer();
  bad.devices = 0;
  EXPECT_NE(complaint(bad).find("devices"), std::string::npos);
  bad = one_layer();
  bad.micro_batches = 0;
  EXPECT_NE(complaint(bad).find("max-microbatches"), std::string::npos);
  bad = one_layer();
  bad.memory_bytes = nan;
  EXPECT_NE(complaint(bad).find("memory"), std::string::npos);
  bad = one_layer();
  bad.bandwidth_bytes = 0;
  EXPECT_NE(complaint(bad).find("bandwidth"), std::string::npos);
  bad = one_layer();
  bad.nodes[0].degrees[0].options[0].time = -1;
  EXPECT_NE(complaint(bad).find("only"), std::string::npos);
  bad = one_layer();
  bad.nodes[0].degrees[0].options.clear();
  EXPECT_NE(complaint(bad).find("only"), std::string::npos);
  bad = one_layer();
  bad.nodes[0].degrees.clear();
  EXPECT_NE(complaint(bad).find("only"), std::string::npos);
  bad = one_layer();
  bad.edges = {{0, 1, 1}};
  EXPECT_NE(complaint(bad).find("edge"), std::string::npos);
  bad = one_layer();
  bad.nodes.push_back(bad.nodes[0]);
  bad.edges = {{1, 0, 1}};
  EXPECT_NE(complaint(bad).find("edge"), std::string::npos);
  bad.edges = {{0, 1, 1}, {0, 1, 1}};
  EXPECT_NE(complaint(bad).find("order"), std::string::npos);
  bad.edges = {{0, 1, nan}};
  EXPECT_NE(complaint(bad).find("bytes"), std::string::npos);
}

TEST(PiperSearch, RefusesTooManyDownsets) {
  PiperProblem problem = one_layer();
  for (int i = 0; i < 30; ++i) problem.nodes.push_back(problem.nodes[0]);
  EXPECT_THROW(solve_piper(problem, {.downsets = 1000}), Error);
}

}  // namespace
}  // namespace braid
