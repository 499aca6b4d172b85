#include "braid/search/layer_outputs.h"

#include <algorithm>
#include <cstddef>

namespace braid {

std::vector<double> chain_cut_bytes(std::span<const double> output_bytes,
                                    std::span<const std::pair<std::int32_t, std::int32_t>> edges) {
  std::vector<std::size_t> needed_until(output_bytes.size(), 0);
  for (const auto& [source, target] : edges) {
    std::size_t& last = needed_until[static_cast<std::size_t>(source)];
    last = std::max(last, static_cast<std::size_t>(target));
  }
  std::vector<double> from(output_bytes.size() + 1,
                           0);  // What is needed no longer from a layer on.
  std::vector<double> bytes;
  bytes.reserve(output_bytes.size());
  double open = 0;
  for (std::size_t l = 0; l + 1 < output_bytes.size(); ++l) {
    if (needed_until[l] > l) {
      open += output_bytes[l];
      from[needed_until[l]] += output_bytes[l];
    }
    open = std::max(0.0, open - from[l]);
    bytes.push_back(open);
  }
  return bytes;
}

std::vector<std::pair<std::int32_t, std::int32_t>> layer_pairs(std::span<const ProfileEdge> edges) {
  std::vector<std::pair<std::int32_t, std::int32_t>> pairs;
  pairs.reserve(edges.size());
  for (const ProfileEdge& edge : edges) pairs.emplace_back(edge.source, edge.target);
  return pairs;
}

}  // namespace braid
