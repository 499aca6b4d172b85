#include "braid/graph/predicts_mtp.h"

#include <variant>

namespace braid {

bool predicts_mtp(const Graph& graph) {
  if (graph.layers.size() < 3) return false;
  const Layer& layer = graph.layers[graph.layers.size() - 2];
  for (OperatorId id = layer.first; id < layer.last; ++id) {
    const Operator& op = graph.operators[static_cast<std::size_t>(id)];
    if (std::holds_alternative<Embedding>(op.kind)) return true;
  }
  return false;
}

}  // namespace braid
