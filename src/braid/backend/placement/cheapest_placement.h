#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "braid/backend/placement/placed_values.h"

namespace braid {

/// A kernel that could compute some nodes of a graph together.
struct PlacementCandidate {
  std::vector<std::int32_t> nodes;  ///< Ascending; at least one.
  // Of values that have formats; all of them that the kernel reads, and that it writes.
  std::vector<FormatUse> reads = {}, writes = {};
};

struct PlacementProblem {
  std::int32_t node_count = 0;
  std::vector<PlacementCandidate> candidates;
  /// Seconds that candidate `i` takes; infinite where it does not run. Asked once, and only of
  /// candidates that the search reaches.
  std::function<double(std::size_t candidate)> cost_s;
  double cost_per_kernel_s = 0;  ///< Added for each candidate that is taken.
  PlacedValues values = {};      ///< None where all is read and written in one format.
};

/// A value that is there in one format is written in another.
struct FormatTurn {
  std::int32_t value = 0;
  std::int8_t from = 0, to = 0;
  friend bool operator==(const FormatTurn&, const FormatTurn&) = default;
};

struct CheapestPlacement {
  std::vector<std::size_t> candidates;  ///< What is taken, in the order of their first nodes.
  /// For each value in an order in which they can be done, each before its first reader.
  std::vector<FormatTurn> turns;
  double cost_s = 0;        ///< With `cost_per_kernel_s` of each, and turns.
  std::int64_t states = 0;  ///< Settled by the search.
  std::int64_t asked = 0;   ///< Candidates whose cost was asked for.
};

/// Candidates that cover every node exactly once and cost least together: uniform-cost search
/// (Dijkstra 1959) over sets of covered nodes, as TVM's Collage has it. From each state go the
/// candidates that hold its first node not yet covered and no covered one, so that every set of
/// candidates is met in one order only, and the answer is exact where costs add up. nullopt where
/// no candidates cover all nodes, or only infinite ones.
///
/// With formats a state also holds in which ones each value lies that is read later. Where a
/// candidate reads a value in a format that is missing, the value is turned, into that format alone
/// or into others as well (placed_values.h), so that the answer is exact for them, too; where the
/// value is not computed yet, the state holds that the format is wanted. A state is left out where
/// a cheaper one with the same nodes covered can turn its values into the same formats, wants no
/// others, and is still no dearer.
///
/// Of placements that cost the same, the one is taken that was found first: with the candidates
/// listed first. Same input, same answer. States are as many as there are sets of covered nodes
/// with a gap, so about as many as nodes where candidates are small; `most_states` ends the search
/// with an Error, as a budget in work units.
std::optional<CheapestPlacement> cheapest_placement(const PlacementProblem& problem,
                                                    std::int64_t most_states = 10'000'000);

}  // namespace braid
