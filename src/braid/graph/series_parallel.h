#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace braid {

/// A node of a series-parallel tree: the part of a graph between two of its nodes.
struct SpNode {
  enum class Kind : std::uint8_t {
    edge,     ///< One edge of the graph.
    series,   ///< Children one after the other, each beginning where the one before ends.
    parallel  ///< Children side by side, all from `source` to `target`.
  };
  Kind kind = Kind::edge;
  std::int32_t source = 0;
  std::int32_t target = 0;
  std::int32_t edge = -1;              ///< Index of the edge; -1 for series and parallel.
  std::vector<std::int32_t> children;  ///< Two or more, of another kind; empty for an edge.
};

/// Nodes with children before parents; the last one is the root.
using SpTree = std::vector<SpNode>;

struct SeriesParallel {
  std::optional<SpTree> tree;           ///< nullopt when the graph is not series-parallel.
  std::vector<std::int32_t> offending;  ///< Then: the nodes of its irreducible rest, ascending.
};

/// Series-parallel tree of a DAG of `nodes` nodes between `source` and `sink`; repeated edges are
/// parallel ones. Nodes on no path between the two make a graph irreducible. Reduces series and
/// parallel pairs until one edge is left (Valdes, Tarjan & Lawler 1982, §3), in linear expected
/// time.
SeriesParallel series_parallel(std::size_t nodes,
                               std::span<const std::pair<std::int32_t, std::int32_t>> edges,
                               std::int32_t source, std::int32_t sink);

}  // namespace braid
