#include "braid/planners/chain_job.h"

#include <algorithm>

#include "braid/base/infinity.h"
#include "braid/plan/dealt_layers.h"
#include "braid/profile/layer_profile.h"

namespace braid {

ChainJob chain_job(const Job& job, const System& system) {
  ChainJob chain;
  chain.job = &job;
  chain.system = &system;
  const Graph& graph = *job.graph;
  for (const Layer& layer : graph.layers) chain.kind_of_layer.push_back(layer.kind);
  chain.edges = profile_edges(graph);
  chain.shared = shared_parameters(graph);
  chain.heavy_end = predicts_further_tokens(graph);
  std::size_t hops = 0;
  chain.least_hop_bytes = kInfinity;
  for (const ProfileEdge& edge : chain.edges) {
    if (edge.target != edge.source + 1) continue;
    ++hops;
    chain.least_hop_bytes = std::min(chain.least_hop_bytes, edge.bytes);
  }
  chain.branched = hops + 1 < graph.layers.size();
  if (chain.branched || hops == 0) chain.least_hop_bytes = 0;
  if (!chain.branched && hops == chain.edges.size()) {
    for (const ProfileEdge& edge : chain.edges) chain.hop_bytes.push_back(edge.bytes);
  }
  return chain;
}

}  // namespace braid
