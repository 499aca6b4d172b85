#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "braid/graph/bitset.h"
#include "braid/graph/graph.h"

namespace braid {

/// The order of a DAG with nodes numbered topologically: who must come before whom.
struct Dag {
  std::vector<Bitset> predecessors;  ///< Direct ones.
  std::vector<Bitset> successors;
  std::size_t size() const { return predecessors.size(); }
};

/// The DAG of these edges over `nodes` nodes; each edge goes from a lower to a higher number.
Dag make_dag(std::size_t nodes, std::span<const std::pair<std::int32_t, std::int32_t>> edges);

/// The order of downsets: by size, then as Bitset orders.
bool smaller_downset(const Bitset& a, const Bitset& b);

/// All downsets (order ideals) of a DAG: the sets that hold every predecessor of their members, the
/// empty and the whole one included, ordered by smaller_downset. nullopt when there are
/// more than `limit`. Each costs one step per node that may join it: O(count · nodes) time, and at
/// most `limit` + 1 sets are made.
std::optional<std::vector<Bitset>> downsets(const Dag& dag, std::size_t limit);

/// Two downsets, by index into the list, of which `inner` is a proper subset of `outer`; their
/// difference is a contiguous (convex) set: a candidate stage. Distinct pairs may give the same
/// set.
struct DownsetPair {
  std::uint32_t inner = 0;
  std::uint32_t outer = 0;
  friend bool operator==(const DownsetPair&, const DownsetPair&) = default;
};

/// All such pairs with at most `most_nodes` nodes in the difference, ordered by outer, then inner.
/// nullopt when there are more than `limit`. `sets` is what downsets() returned. Quadratic in it.
std::optional<std::vector<DownsetPair>> downset_pairs(const std::vector<Bitset>& sets,
                                                      std::size_t most_nodes, std::size_t limit);

}  // namespace braid
