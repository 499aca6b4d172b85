#include <algorithm>
#include <utility>

#include "braid/base/error.h"
#include "braid/planners/piper/search.h"

namespace braid {
namespace {

Dag dag_of(const PiperProblem& problem) {
  std::vector<std::pair<std::int32_t, std::int32_t>> edges;
  edges.reserve(problem.edges.size());
  for (const PiperEdge& edge : problem.edges) edges.emplace_back(edge.source, edge.target);
  return make_dag(problem.nodes.size(), edges);
}

}  // namespace

bool has_options(const PiperProblem& problem) {
  return std::all_of(problem.nodes.begin(), problem.nodes.end(), [&](const PiperNode& node) {
    return !node.degrees.empty() && node.degrees.front().tp <= problem.devices;
  });
}

DownsetLattice piper_order_prefixes(const PiperProblem& problem) {
  return order_lattice(dag_of(problem));
}

DownsetLattice piper_prefixes(const PiperProblem& problem, const PiperSearchLimits& limits) {
  if (problem.one_stage) return uncut_lattice(problem.nodes.size());
  auto found = downset_lattice(dag_of(problem), limits.downsets);
  if (!found) {
    throw Error("the layer graph has more than " + std::to_string(limits.downsets) +
                    " downsets: too many parallel branches",
                "merge layers of parallel branches");
  }
  return std::move(*found);
}

}  // namespace braid
