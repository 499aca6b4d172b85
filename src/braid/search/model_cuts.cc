#include "braid/search/model_cuts.h"

#include <map>

#include "braid/search/symmetric_branches.h"

namespace braid {

std::optional<ModelCuts> model_cuts(std::span<const std::int32_t> kind_of_layer,
                                    std::span<const std::pair<std::int32_t, std::int32_t>> edges,
                                    std::span<const double> output_bytes) {
  // One layer after the other is at least one cut more than there are layers.
  if (output_bytes.size() >= kMostGraphCuts) return std::nullopt;
  std::map<std::pair<std::int32_t, double>, std::size_t> label_of;
  std::vector<std::size_t> label;
  label.reserve(output_bytes.size());
  for (std::size_t l = 0; l < output_bytes.size(); ++l) {
    const std::pair key(kind_of_layer[l], output_bytes[l]);
    label.push_back(label_of.emplace(key, label_of.size()).first->second);
  }
  std::vector<std::pair<std::int32_t, std::int32_t>> in_turn(edges.begin(), edges.end());
  const auto turns = symmetry_breaking_edges(label, edges);
  in_turn.insert(in_turn.end(), turns.begin(), turns.end());
  auto cuts = graph_cuts(make_dag(output_bytes.size(), in_turn), kMostGraphCuts);
  if (!cuts.has_value()) return std::nullopt;
  ModelCuts found;
  found.crossing_bytes = cuts->crossing(make_dag(output_bytes.size(), edges), output_bytes);
  found.cuts = std::move(*cuts);
  return found;
}

std::string assumption_of_layer_order() {
  return "the model's branches are cut in the order of their layers: they can be cut in more "
         "than " +
         std::to_string(kMostGraphCuts) + " ways";
}

}  // namespace braid
