#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace braid {

/// A cost whose later parts break ties of the earlier ones; added part by part.
using RankedCost = std::array<double, 3>;
RankedCost operator+(const RankedCost& a, const RankedCost& b);

/// Variables with few values each, a cost for every value, and costs for pairs of values.
struct PairwiseProblem {
  struct Pair {
    std::size_t a = 0, b = 0;
    std::vector<RankedCost> costs;  ///< By value of a, then of b.
  };
  std::vector<std::vector<RankedCost>> costs;  ///< By variable, then value; at least one value.
  std::vector<Pair> pairs;
};

RankedCost cost_of(const PairwiseProblem& problem, const std::vector<std::size_t>& values);

/// Values of least total cost, exactly: variables are eliminated one by one, each time the one
/// whose table over its neighbours is smallest (Bertele and Brioschi 1972). nullopt when a table
/// would have more than `most_entries` entries.
std::optional<std::vector<std::size_t>> minimise(const PairwiseProblem& problem,
                                                 std::size_t most_entries);

/// Values that no change of a single variable improves: sweeps from the cheapest value of each.
std::vector<std::size_t> descend(const PairwiseProblem& problem);

}  // namespace braid
