#include <algorithm>
#include <array>
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

/// A random DAG whose values lie in three formats, with candidates of one to three nodes.
struct FormatCase {
  PlacementProblem problem;
  std::vector<double> costs_s;
  std::vector<double> turns_s;  ///< [value][from][to]
};

FormatCase random_format_case(std::mt19937_64& random) {
  constexpr int formats = 3;
  FormatCase made;
  PlacementProblem& problem = made.problem;
  problem.node_count = static_cast<std::int32_t>(1 + random() % 6);
  // Value 0 is the input, value n + 1 what node n computes.
  const std::int32_t values = problem.node_count + 1;
  std::vector<std::vector<std::int32_t>> operands(static_cast<std::size_t>(problem.node_count));
  problem.values.formats = formats;
  problem.values.values.resize(static_cast<std::size_t>(values));
  for (std::int32_t node = 0; node < problem.node_count; ++node) {
    auto& own = operands[static_cast<std::size_t>(node)];
    own.push_back(static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(node + 1)));
    const auto other = static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(node + 1));
    if (other != own.front()) own.push_back(other);
    for (const std::int32_t value : own) {
      problem.values.values[static_cast<std::size_t>(value)].readers.push_back(node);
    }
  }
  for (std::int32_t value = 1; value < values; ++value) {
    PlacedValue& placed = problem.values.values[static_cast<std::size_t>(value)];
    placed.producer = value - 1;
    placed.is_output = placed.readers.empty() || random() % 6 == 0;
  }
  const auto format = [&] { return static_cast<std::int8_t>(random() % formats); };
  for (std::int32_t node = 0; node < problem.node_count; ++node) {
    for (int c = 0; c < 4; ++c) {
      PlacementCandidate candidate{.nodes = {node}};
      for (std::int32_t later = node + 1; later < problem.node_count && c > 1; ++later) {
        if (random() % 3 == 0 && candidate.nodes.size() < 3) candidate.nodes.push_back(later);
      }
      for (const std::int32_t each : candidate.nodes) {
        for (const std::int32_t value : operands[static_cast<std::size_t>(each)]) {
          const bool inside = std::find(candidate.nodes.begin(), candidate.nodes.end(),
                                        value - 1) != candidate.nodes.end();
          if (!inside) candidate.reads.push_back({value, format()});
        }
        candidate.writes.push_back({each + 1, format()});
      }
      problem.candidates.push_back(candidate);
      made.costs_s.push_back(static_cast<double>(random() % 30));
    }
  }
  for (int i = 0; i < values * formats * formats; ++i) {
    made.turns_s.push_back(static_cast<double>(random() % 12));
  }
  return made;
}

/// The least to have a value in all `wanted` formats when it is written in `from`: over all ways to
/// give each further format one that it is made from.
double exhaustive_turns_s(const std::vector<double>& turns_s, std::int32_t value, int from,
                          unsigned wanted) {
  double least_s = std::numeric_limits<double>::infinity();
  for (unsigned set = 0; set < 8; ++set) {
    if ((set & (1U << static_cast<unsigned>(from))) == 0 || (set & wanted) != wanted) continue;
    for (int code = 0; code < 27; ++code) {
      const std::array<int, 3> source{code % 3, code / 3 % 3, code / 9};
      double sum_s = 0;
      bool is_tree = true;
      for (int to = 0; to < 3; ++to) {
        if (to == from || (set >> static_cast<unsigned>(to) & 1U) == 0) continue;
        const int by = source[static_cast<std::size_t>(to)];
        is_tree = is_tree && by != to && (set >> static_cast<unsigned>(by) & 1U) != 0;
        sum_s += turns_s[static_cast<std::size_t>((value * 3 + by) * 3 + to)];
        int walk = to;
        for (int step = 0; step < 3 && walk != from; ++step) {
          walk = source[static_cast<std::size_t>(walk)];
        }
        is_tree = is_tree && walk == from;
      }
      if (is_tree) least_s = std::min(least_s, sum_s);
    }
  }
  return least_s;
}

double exhaustive_with_formats_s(const FormatCase& made, std::vector<bool>& covered,
                                 std::vector<std::size_t>& chosen) {
  const PlacementProblem& problem = made.problem;
  std::size_t first = 0;
  while (first < covered.size() && covered[first]) ++first;
  if (first == covered.size()) {
    double sum_s = 0;
    for (std::size_t value = 0; value < problem.values.values.size(); ++value) {
      int from = 0;
      unsigned wanted = problem.values.values[value].is_output ? 1U : 0U;
      for (const std::size_t c : chosen) {
        for (const FormatUse& use : problem.candidates[c].writes) {
          if (use.value == static_cast<std::int32_t>(value)) from = use.format;
        }
        for (const FormatUse& use : problem.candidates[c].reads) {
          if (use.value == static_cast<std::int32_t>(value)) {
            wanted |= 1U << static_cast<unsigned>(use.format);
          }
        }
      }
      sum_s += exhaustive_turns_s(made.turns_s, static_cast<std::int32_t>(value), from, wanted);
    }
    for (const std::size_t c : chosen) sum_s += made.costs_s[c];
    return sum_s;
  }
  double least_s = std::numeric_limits<double>::infinity();
  for (std::size_t c = 0; c < problem.candidates.size(); ++c) {
    const auto& nodes = problem.candidates[c].nodes;
    bool fits = static_cast<std::size_t>(nodes.front()) == first;
    for (const std::int32_t node : nodes) fits = fits && !covered[static_cast<std::size_t>(node)];
    if (!fits) continue;
    for (const std::int32_t node : nodes) covered[static_cast<std::size_t>(node)] = true;
    chosen.push_back(c);
    least_s = std::min(least_s, exhaustive_with_formats_s(made, covered, chosen));
    chosen.pop_back();
    for (const std::int32_t node : nodes) covered[static_cast<std::size_t>(node)] = false;
  }
  return least_s;
}

/// What a placement costs when it is carried out: every turn must start from a format that is
/// there, and candidates and outputs find what they need.
double carried_out_s(const FormatCase& made, const CheapestPlacement& placement) {
  const PlacementProblem& problem = made.problem;
  std::vector<unsigned> formats(problem.values.values.size(), 0);
  formats[0] = 1;
  double sum_s = 0;
  for (const std::size_t c : placement.candidates) {
    for (const FormatUse& use : problem.candidates[c].writes) {
      formats[static_cast<std::size_t>(use.value)] = 1U << static_cast<unsigned>(use.format);
    }
    sum_s += made.costs_s[c];
  }
  for (const FormatTurn& each : placement.turns) {
    unsigned& set = formats[static_cast<std::size_t>(each.value)];
    EXPECT_NE(set >> static_cast<unsigned>(each.from) & 1U, 0U);
    set |= 1U << static_cast<unsigned>(each.to);
    sum_s += problem.values.turn_s(each.value, each.from, each.to);
  }
  for (const std::size_t c : placement.candidates) {
    for (const FormatUse& use : problem.candidates[c].reads) {
      const unsigned set = formats[static_cast<std::size_t>(use.value)];
      EXPECT_NE(set >> static_cast<unsigned>(use.format) & 1U, 0U);
    }
  }
  for (std::size_t value = 0; value < formats.size(); ++value) {
    const bool is_output = problem.values.values[value].is_output;
    EXPECT_TRUE(!is_output || (formats[value] & 1U) == 1U);
  }
  return sum_s;
}

TEST(CheapestPlacement, WithFormatsIsThatOfTryingEverything) {
  std::mt19937_64 random(11);
  int turned = 0;
  for (int trial = 0; trial < 400; ++trial) {
    FormatCase made = random_format_case(random);
    made.problem.cost_s = [&](std::size_t candidate) { return made.costs_s[candidate]; };
    made.problem.values.turn_s = [&](std::int32_t value, int from, int to) {
      return made.turns_s[static_cast<std::size_t>((value * 3 + from) * 3 + to)];
    };
    const auto found = cheapest_placement(made.problem);
    std::vector<bool> covered(static_cast<std::size_t>(made.problem.node_count), false);
    std::vector<std::size_t> chosen;
    const double expected_s = exhaustive_with_formats_s(made, covered, chosen);
    ASSERT_TRUE(found);
    EXPECT_DOUBLE_EQ(found->cost_s, expected_s) << trial;
    EXPECT_DOUBLE_EQ(carried_out_s(made, *found), expected_s) << trial;
    turned += static_cast<int>(found->turns.size());
  }
  EXPECT_GT(turned, 100);
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
