#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace braid {

/// Dimensions of a dense decoder as its authors publish them.
struct KnownModel {
  std::string_view family, size;  ///< "llama2", "34b".
  std::int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, ffn = 0, vocab = 0;
  bool gated = false;         ///< Llama-like blocks; else those of GPT.
  std::int64_t head_dim = 0;  ///< 0: the heads share the hidden size.
};

/// Lower-case letters, digits and points of a name up to a parenthesis, without the words at its
/// end that say who trained it or for what: "LLaMA-65B (HF)" is "llama65b".
std::string plain_name(std::string_view name);

/// The model of that name, in any spelling: "GPT-3 18.4B", "Megatron 22B", "LLaMA-65B",
/// "Qwen2.5-72B-Instruct", "MaxText-64B" (maxtext_scripts.h). Nullopt when it is none of those
/// listed.
std::optional<KnownModel> known_model(std::string_view name);

}  // namespace braid
