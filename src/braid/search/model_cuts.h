#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "braid/search/graph_cuts.h"

namespace braid {

/// The ways to cut a model whose layers branch over a line of stages: the cuts of its graph, of
/// branches that are alike (symmetric_branches.h) one each, and what crosses each cut.
struct ModelCuts {
  GraphCuts cuts;
  std::vector<double> crossing_bytes;  ///< By cut, per sample.
};

/// `edges` and `output_bytes` (per sample) being those of the layers. nullopt when there
/// are more than kMostGraphCuts.
std::optional<ModelCuts> model_cuts(std::span<const std::int32_t> kind_of_layer,
                                    std::span<const std::pair<std::int32_t, std::int32_t>> edges,
                                    std::span<const double> output_bytes);

/// What an outcome says of a model that has none for that reason.
std::string assumption_of_layer_order();

}  // namespace braid
