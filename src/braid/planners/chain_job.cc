#include "braid/planners/chain_job.h"

#include <algorithm>
#include <limits>

#include "braid/profile/layer_profile.h"

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
  // Sum of the edges that are open after each layer, by differences.
  std::vector<double> change(graph.layers.size() + 1, 0.0);
  bool only_hops = true;
  chain.edges = profile_edges(graph);
  for (const ProfileEdge& edge : chain.edges) {
    only_hops = only_hops && edge.target == edge.source + 1;
    change[at(edge.source)] += edge.bytes;
    change[at(edge.target)] -= edge.bytes;
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
