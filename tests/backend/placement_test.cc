#include <cmath>
#include <limits>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/backend/placement/cheapest_placement.h"

#include "base/error_text.h"

namespace braid {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// The least cost of covering what is not yet covered, by trying everything.
double exhaustive_cost_s(const PlacementProblem& problem, const std::vector<double>& costs_s,
                         std::vector<bool>& covered) {
  std::size_t first = 0;
  while (first < covered.size() && covered[first]) ++first;
  if (first == covered.size()) return 0;
  double least_s = std::numeric_limits<double>::infinity();
  for (std::size_t c = 0; c < problem.candidates.size(); ++c) {
    const auto& nodes = problem.candidates[c].nodes;
    bool fits = false;
    for (const std::int32_t node : nodes) fits = fits || static_cast<std::size_t>(node) == first;
    for (const std::int32_t node : nodes) fits = fits && !covered[static_cast<std::size_t>(node)];
    if (!fits) continue;
    for (const std::int32_t node : nodes) covered[static_cast<std::size_t>(node)] = true;
    const double rest_s = exhaustive_cost_s(problem, costs_s, covered);
    least_s = std::min(least_s, costs_s[c] + problem.cost_per_kernel_s + rest_s);
    for (const std::int32_t node : nodes) covered[static_cast<std::size_t>(node)] = false;
  }
  return least_s;
}

TEST(CheapestPlacement, IsThatOfTryingEverything) {
  std::mt19937_64 random(7);
  int infeasible = 0;
  for (int trial = 0; trial < 300; ++trial) {
    PlacementProblem problem;
    problem.node_count = static_cast<std::int32_t>(1 + random() % 9);
    problem.cost_per_kernel_s = trial % 2 == 0 ? 0 : 3;
    std::vector<double> costs_s;
    for (int c = 0; c < 3 * problem.node_count; ++c) {
      PlacementCandidate candidate;
      for (std::int32_t node = 0; node < problem.node_count; ++node) {
        if (random() % 4 == 0) candidate.nodes.push_back(node);
      }
      if (candidate.nodes.empty()) continue;
      problem.candidates.push_back(candidate);
      const bool runs = random() % 10 != 0;
      costs_s.push_back(runs ? static_cast<double>(random() % 100)
                             : std::numeric_limits<double>::infinity());
    }
    problem.cost_s = [&](std::size_t candidate) { return costs_s[candidate]; };
    const auto found = cheapest_placement(problem);
    std::vector<bool> covered(static_cast<std::size_t>(problem.node_count), false);
    const double expected_s = exhaustive_cost_s(problem, costs_s, covered);
    ASSERT_EQ(found.has_value(), std::isfinite(expected_s));
    if (!found) {
      ++infeasible;
      continue;
    }
    EXPECT_DOUBLE_EQ(found->cost_s, expected_s);
    double sum_s = 0;
    std::vector<int> times(static_cast<std::size_t>(problem.node_count), 0);
    for (const std::size_t each : found->candidates) {
      sum_s += costs_s[each] + problem.cost_per_kernel_s;
      for (const std::int32_t node : problem.candidates[each].nodes) {
        ++times[static_cast<std::size_t>(node)];
      }
    }
    EXPECT_DOUBLE_EQ(sum_s, found->cost_s);
    EXPECT_THAT(times, testing::Each(1));
  }
  EXPECT_GT(infeasible, 10);
  EXPECT_LT(infeasible, 200);
}

TEST(CheapestPlacement, AsksOnlyForWhatCanBeCheapest) {
  // Node 3 alone can only follow node 2 alone, which is dearer than both together.
  PlacementProblem problem{
      .node_count = 4, .candidates = {{{0}}, {{1}}, {{2}}, {{2, 3}}, {{3}}}, .cost_s = {}};
  std::vector<int> asked(5, 0);
  problem.cost_s = [&](std::size_t candidate) {
    ++asked[candidate];
    return candidate == 2 ? 100.0 : 1.0;
  };
  const auto found = cheapest_placement(problem);
  ASSERT_TRUE(found);
  EXPECT_THAT(found->candidates, ElementsAre(0, 1, 3));
  EXPECT_EQ(found->cost_s, 3);
  EXPECT_THAT(asked, ElementsAre(1, 1, 1, 1, 0));
  EXPECT_EQ(found->asked, 4);
}

TEST(CheapestPlacement, EndsWithItsBudget) {
  PlacementProblem problem{.node_count = 3, .candidates = {{{0}}, {{1}}, {{2}}}, .cost_s = {}};
  problem.cost_s = [](std::size_t) { return 1.0; };
  EXPECT_THAT(error_text([&] { cheapest_placement(problem, 2); }), HasSubstr("budget"));
  EXPECT_EQ(cheapest_placement(problem, 4)->states, 4);
}

}  // namespace
}  // namespace braid
