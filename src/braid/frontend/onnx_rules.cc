#include "braid/frontend/onnx_rules.h"

#include <algorithm>
#include <array>
#include <unordered_map>

namespace braid {
namespace {

/// Operations that ONNX Runtime adds, under its own domain or ONNX's.
constexpr std::array<std::string_view, 12> contributed{"BiasGelu",
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

using Rules = std::unordered_map<std::string_view, OnnxRule>;

Rules collect() {
  Rules rules;
  for (const auto& list :
       {onnx_pointwise_rules(), onnx_gemm_rules(), onnx_attention_rules(), onnx_window_rules(),
        onnx_recurrent_rules(), onnx_reduction_rules(), onnx_normalization_rules(),
        onnx_view_rules(), onnx_movement_rules(), onnx_gather_rules(), onnx_constant_rules()}) {
    for (const OnnxRuleEntry& entry : list) rules.emplace(entry.operation, entry.rule);
  }
  return rules;
}

const Rules& known_rules() {
  static const Rules all = collect();
  return all;
}

}  // namespace

OnnxRule onnx_rule(std::string_view domain, std::string_view operation) {
  const bool is_contributed =
      domain == "com.microsoft" &&
      std::find(contributed.begin(), contributed.end(), operation) != contributed.end();
  if (!domain.empty() && !is_contributed) return nullptr;
  const auto found = known_rules().find(operation);
  return found == known_rules().end() ? nullptr : found->second;
}

std::vector<std::string_view> onnx_operations() {
  std::vector<std::string_view> names;
  names.reserve(known_rules().size());
  for (const auto& [name, rule] : known_rules()) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace braid
