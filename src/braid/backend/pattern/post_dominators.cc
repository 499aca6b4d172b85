#include "braid/backend/pattern/post_dominators.h"

#include <algorithm>

#include "braid/base/index.h"

namespace braid {

std::vector<std::int32_t> post_dominators(const OpGraph& graph) {
  const std::vector<std::vector<std::int32_t>> readers = readers_of(graph);
  std::vector<std::int32_t> next(graph.nodes.size(), -1);
  // Numbers grow along every edge, so the deeper of two nodes of the tree is the smaller one.
  const auto meeting = [&](std::int32_t a, std::int32_t b) {
    while (a != b && a >= 0 && b >= 0) {
      if (a < b) {
        a = next[at(a)];
      } else {
        b = next[at(b)];
      }
    }
    return a == b ? a : -1;
  };
  for (std::size_t n = graph.nodes.size(); n-- > 0;) {
    const auto number = static_cast<std::int32_t>(n);
    const bool is_output =
        std::find(graph.outputs.begin(), graph.outputs.end(), number) != graph.outputs.end();
    if (is_output || readers[n].empty()) continue;
    next[n] = readers[n].front();
    for (const std::int32_t reader : readers[n]) next[n] = meeting(next[n], reader);
  }
  return next;
}

}  // namespace braid
