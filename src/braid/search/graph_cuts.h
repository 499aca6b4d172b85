#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "braid/search/downset_lattice.h"

namespace braid {

/// Graphs that can be cut in more ways are not cut in all of them by AMP's planners.
inline constexpr std::size_t kMostGraphCuts = 20'000;

/// All ways to cut a graph with, beside the lattice, how one layer more leads from one to another.
struct GraphCuts : DownsetLattice {
  struct Step {
    std::uint32_t layer = 0;
    std::uint32_t to = 0;  ///< Index of the cut with this layer too.
  };
  std::vector<Step> steps;  ///< By cut, those of cut i from first_step[i] to first_step[i + 1].
  std::vector<std::size_t> first_step;

  /// By cut, the sum of what the layers before it have. Linear in the cuts.
  std::vector<double> sums(const std::vector<double>& of_layers) const;
  /// By cut, the sum of what those layers before it have that `dag` leads from to layers behind.
  /// O(cuts · layers).
  std::vector<double> crossing(const Dag& dag, std::span<const double> of_layers) const;
};

/// nullopt when there are more than `most`. Costs O(cuts · layers) set operations.
std::optional<GraphCuts> graph_cuts(const Dag& dag, std::size_t most);

}  // namespace braid
