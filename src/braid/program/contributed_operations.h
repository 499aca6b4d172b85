#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace braid {

/// The domain of the operations that ONNX Runtime adds to ONNX's own.
inline constexpr std::string_view contributed_domain = "com.microsoft";

/// Whether braid knows an operation of that domain; exporters write some of them under ONNX's too.
inline bool is_contributed(std::string_view operation) {
  constexpr std::array<std::string_view, 12> known{"BiasGelu",
                                                   "DequantizeLinear",
                                                   "FastGelu",
                                                   "Gelu",
                                                   "GroupQueryAttention",
                                                   "MultiHeadAttention",
                                                   "QuantizeLinear",
                                                   "QuickGelu",
                                                   "RotaryEmbedding",
                                                   "SimplifiedLayerNormalization",
                                                   "SkipLayerNormalization",
                                                   "SkipSimplifiedLayerNormalization"};
  return std::find(known.begin(), known.end(), operation) != known.end();
}

}  // namespace braid
