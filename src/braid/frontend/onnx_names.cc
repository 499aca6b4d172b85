#include "braid/frontend/onnx_names.h"

#include <unordered_set>

#include <fmt/format.h>

namespace braid {

void make_names_unique(Graph& graph) {
  std::unordered_set<std::string_view> names;
  names.reserve(graph.operators.size());
  std::int64_t repeated = 0;
  for (Operator& op : graph.operators) {
    if (names.insert(op.name).second) continue;
    const std::string base = op.name;
    do {
      op.name = fmt::format("{}#{}", base, ++repeated);
    } while (!names.insert(op.name).second);
  }
}

}  // namespace braid
