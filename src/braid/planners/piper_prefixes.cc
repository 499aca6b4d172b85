#include <algorithm>
#include <utility>

#include "braid/base/error.h"
#include "braid/graph/downsets.h"
#include "braid/planners/piper_search.h"

namespace braid {
namespace {

/// The layers in topological order: of those that are ready the first, the last, the one that has
/// been so longest, or shortest.
std::vector<std::int32_t> order_of(const PiperProblem& problem, int choice) {
  std::vector<std::vector<std::int32_t>> successors(problem.nodes.size());
  std::vector<std::int32_t> waits(problem.nodes.size(), 0), ready, order;
  for (const PiperEdge& edge : problem.edges) {
    successors[static_cast<std::size_t>(edge.source)].push_back(edge.target);
    ++waits[static_cast<std::size_t>(edge.target)];
  }
  for (std::size_t v = 0; v < waits.size(); ++v) {
    if (waits[v] == 0) ready.push_back(static_cast<std::int32_t>(v));
  }
  while (!ready.empty()) {
    const auto next = choice == 0   ? std::min_element(ready.begin(), ready.end())
                      : choice == 1 ? std::max_element(ready.begin(), ready.end())
                      : choice == 2 ? ready.begin()
                                    : ready.end() - 1;
    const std::int32_t v = *next;
    ready.erase(next);
    order.push_back(v);
    for (const std::int32_t w : successors[static_cast<std::size_t>(v)]) {
      if (--waits[static_cast<std::size_t>(w)] == 0) ready.push_back(w);
    }
  }
  return order;
}

}  // namespace

bool has_options(const PiperProblem& problem) {
  return std::all_of(problem.nodes.begin(), problem.nodes.end(), [&](const PiperNode& node) {
    return !node.degrees.empty() && node.degrees.front().tp <= problem.devices;
  });
}

std::vector<Bitset> piper_order_prefixes(const PiperProblem& problem) {
  std::vector<Bitset> prefixes;
  for (const int choice : {0, 1, 2, 3}) {
    Bitset prefix(problem.nodes.size());
    prefixes.push_back(prefix);
    for (const std::int32_t v : order_of(problem, choice)) {
      prefix.set(static_cast<std::size_t>(v));
      prefixes.push_back(prefix);
    }
  }
  std::sort(prefixes.begin(), prefixes.end(), [](const Bitset& a, const Bitset& b) {
    const std::size_t in_a = a.count(), in_b = b.count();
    return in_a != in_b ? in_a < in_b : a < b;
  });
  prefixes.erase(std::unique(prefixes.begin(), prefixes.end()), prefixes.end());
  return prefixes;
}

std::vector<Bitset> piper_prefixes(const PiperProblem& problem, const PiperSearchLimits& limits) {
  const std::size_t nodes = problem.nodes.size();
  if (problem.one_stage) {
    Bitset all(nodes);
    for (std::size_t v = 0; v < nodes; ++v) all.set(v);
    return {Bitset(nodes), all};
  }
  std::vector<std::pair<std::int32_t, std::int32_t>> edges;
  for (const PiperEdge& edge : problem.edges) edges.emplace_back(edge.source, edge.target);
  auto found = downsets(make_dag(nodes, edges), limits.downsets);
  if (!found) {
    throw Error("the layer graph has more than " + std::to_string(limits.downsets) +
                    " downsets: too many parallel branches",
                "merge layers of parallel branches");
  }
  return std::move(*found);
}

}  // namespace braid
