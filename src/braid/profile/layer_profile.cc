#include "braid/profile/layer_profile.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace braid {

std::vector<ProfileEdge> profile_edges(const Graph& graph) {
  const std::vector<LayerEdge> between = layer_edges(graph);
  std::vector<ProfileEdge> edges;
  edges.reserve(between.size());
  for (const LayerEdge& edge : between) {
    edges.push_back({edge.source, edge.target, edge.bytes / static_cast<double>(graph.samples)});
  }
  return edges;
}

Profile layer_profile(const Graph& graph, std::string chip, std::vector<ProfileEdge> edges) {
  Profile profile;
  profile.model = graph.name;
  profile.chip = std::move(chip);
  profile.provenance = "estimated";
  profile.seq_len = graph.seq_len;
  profile.edges = std::move(edges);
  profile.layers.reserve(graph.layers.size());
  std::size_t kinds = 0;
  for (const Layer& layer : graph.layers) {
    profile.layers.push_back({layer.name, layer.kind});
    kinds = std::max(kinds, static_cast<std::size_t>(layer.kind) + 1);
  }
  profile.kinds.resize(kinds);
  return profile;
}

}  // namespace braid
