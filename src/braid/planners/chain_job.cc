#include "braid/planners/chain_job.h"

#include <algorithm>
#include <limits>

namespace braid {
namespace {

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

}  // namespace

ChainJob chain_job(const Job& job, const System& system) {
  ChainJob chain;
  chain.job = &job;
  chain.system = &system;
  const Graph& graph = *job.graph;
  for (const Layer& layer : graph.layers) chain.kind_of_layer.push_back(layer.kind);
  const auto samples = static_cast<double>(graph.samples);
  // Sum of the edges that are open after each layer, by differences.
  std::vector<double> change(graph.layers.size() + 1, 0.0);
  bool only_hops = true;
  for (const LayerEdge& edge : layer_edges(graph)) {
    only_hops = only_hops && edge.target == edge.source + 1;
    chain.edges.push_back({edge.source, edge.target, edge.bytes / samples});
    change[at(edge.source)] += edge.bytes / samples;
    change[at(edge.target)] -= edge.bytes / samples;
  }
  double open = 0;
  chain.least_cut_bytes = std::numeric_limits<double>::infinity();
  for (std::size_t l = 0; l + 1 < graph.layers.size(); ++l) {
    open = std::max(0.0, open + change[l]);
    chain.least_cut_bytes = std::min(chain.least_cut_bytes, open);
  }
  if (graph.layers.size() < 2) chain.least_cut_bytes = 0;
  if (only_hops && chain.edges.size() + 1 == graph.layers.size()) {
    for (const ProfileEdge& edge : chain.edges) chain.hop_bytes.push_back(edge.bytes);
  }
  return chain;
}

}  // namespace braid
