#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "braid/graph/graph.h"

namespace braid {

/// Who reads each tensor, in operator order; an operator that reads a tensor twice is listed once.
class Consumers {
 public:
  explicit Consumers(const Graph& graph);
  std::span<const OperatorId> of(TensorId tensor) const {
    const auto at = static_cast<std::size_t>(tensor);
    return std::span(operators_).subspan(offsets_[at], offsets_[at + 1] - offsets_[at]);
  }

 private:
  std::vector<std::size_t> offsets_;
  std::vector<OperatorId> operators_;
};

struct TopologicalOrder {
  std::vector<OperatorId> order;  ///< Producers first; all operators unless there is a cycle.
  std::vector<OperatorId> cycle;  ///< Operators of one cycle, each feeding the next; empty if none.
};

/// The topological order that takes the lowest-numbered ready operator first, so that operators
/// that already are in order stay where they are. Uses Tensor::producer. O(n log n), linear when in
/// order.
TopologicalOrder topological_order(const Graph& graph);

/// Moves operator order[i] to place i and renumbers producers. Layers are left as they are.
void reorder_operators(Graph& graph, const std::vector<OperatorId>& order);

}  // namespace braid
