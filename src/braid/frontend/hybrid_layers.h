#pragma once

#include <cstdint>
#include <string_view>

#include "braid/frontend/transformer_block.h"

namespace braid {

// The letters of a hybrid's pattern, one a layer: each layer is a half of a block.

inline constexpr std::string_view kHybridLayers = "M*-E";
inline constexpr const char* kHybridLayersRemedy =
    "M is a state-space layer, * attention, - a feed-forward network, E experts";

/// Of one of kHybridLayers.
constexpr Halves halves_of(char layer) {
  return layer == 'M' || layer == '*' ? Halves::mixing : Halves::feeding;
}

/// Of a state, a convolution's taps and a chunk: products of three of them and a width stay within
/// 64 bits.
inline constexpr std::int64_t kMostState = 1 << 13;

}  // namespace braid
