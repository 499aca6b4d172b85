#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "braid/graph/downsets.h"
#include "braid/graph/graph.h"

namespace braid::test {

/// The DAG of a graph's layers.
inline Dag layer_dag(const Graph& graph) {
  std::vector<std::pair<std::int32_t, std::int32_t>> edges;
  for (const LayerEdge& edge : layer_edges(graph)) edges.emplace_back(edge.source, edge.target);
  return make_dag(graph.layers.size(), edges);
}

}  // namespace braid::test
