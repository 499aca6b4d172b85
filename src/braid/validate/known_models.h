#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace braid {

/// Dimensions of a dense decoder as its authors publish them.
struct KnownModel {
  std::string_view family, size;  ///< "llama2", "34b".
  std::int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, ffn = 0, vocab = 0;
  bool gated = false;  ///< Llama-like blocks; else those of GPT.
};

/// The model of that name, in any spelling: "GPT-3 18.4B", "Megatron 22B", "LLaMA-65B",
/// "Qwen2.5-72B-Instruct". Nullopt when it is none of those listed.
std::optional<KnownModel> known_model(std::string_view name);

}  // namespace braid
