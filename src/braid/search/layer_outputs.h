#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "braid/profile/profile.h"

namespace braid {

/// What stages that follow one another hand over at the cut in front of each layer but the first:
/// the outputs of layers before it that layers behind it need, each once. Linear in the edges.
std::vector<double> chain_cut_bytes(std::span<const double> output_bytes,
                                    std::span<const std::pair<std::int32_t, std::int32_t>> edges);

/// From and to of the edges between layers.
std::vector<std::pair<std::int32_t, std::int32_t>> layer_pairs(std::span<const ProfileEdge> edges);

}  // namespace braid
