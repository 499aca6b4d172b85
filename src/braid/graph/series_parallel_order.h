#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "braid/graph/downsets.h"

namespace braid {

/// A part of a DAG in its series-parallel decomposition by order (Valdes, Tarjan & Lawler 1982).
struct OrderPart {
  enum class Kind : std::uint8_t {
    node,
    series,   ///< Children one after the other: all of each comes before all of the next.
    parallel  ///< Children side by side: none of one is before or after any of another.
  };
  Kind kind = Kind::node;
  std::int32_t node = -1;              ///< Of a node; -1 for others.
  std::vector<std::int32_t> children;  ///< Indices of parts; two or more, of another kind.
};

struct OrderTree {
  std::vector<OrderPart> parts;  ///< Children before parents; the last one is the root.
  /// Parts that are neither: each was cut in two by level, half of its nodes put before the other
  /// half, which makes an order that the DAG does not have. 0: the DAG is series-parallel.
  std::int64_t cuts = 0;
};

/// Decomposes the order of a DAG, which has a node. Every decomposition is one of a series-parallel
/// order that holds the DAG's own, so that what is planned for it is good for the DAG. Cost: for
/// each level of nesting, quadratic in nodes / 64.
OrderTree series_parallel_order(const Dag& dag);

}  // namespace braid
