#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace braid {

/// An order of nodes in which few that come before any place have neighbours behind it: its
/// frontier there.
struct FrontierOrder {
  std::vector<std::uint32_t> nodes;
  double subsets = 0;  ///< Of all frontiers together.
  std::size_t widest = 0;
};

/// One of few subsets, by greedy search: the neighbour of the nodes so far that leaves the
/// narrowest frontier comes next, from each node in turn and then with ties and first nodes at
/// random, until `most_steps` nodes were placed; each run stops when it is no better. `near`: the
/// neighbours of each node, each once, both ways. Deterministic.
FrontierOrder frontier_order(const std::vector<std::vector<std::uint32_t>>& near,
                             std::int64_t most_steps);

}  // namespace braid
