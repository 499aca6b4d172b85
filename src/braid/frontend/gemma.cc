#include <array>
#include <cstddef>
#include <cstdint>

#include "braid/frontend/config_fields.h"
#include "braid/frontend/decoder_configs.h"
#include "braid/frontend/decoder_families.h"

namespace braid {
namespace {

DecoderSpec read_gemma_like(const Value& config, const UsualSizes& usual) {
  DecoderSpec spec = read_llama_like(config, usual);
  const bool bias = flag_or(config, "attention_bias", false);
  for (BlockSpec& block : spec.blocks) {
    block.attention.qkv_bias = block.attention.out_bias = bias;
    block.mlp.activation = Activation::gelu;
  }
  spec.tied_embeddings = flag_or(config, "tie_word_embeddings", true);
  spec.norm_from_one = true;
  return spec;
}

DecoderSpec read_gemma(const Value& config) { return read_gemma_like(config, {}); }

DecoderSpec read_gemma2(const Value& config) {
  DecoderSpec spec = read_gemma(config);
  for (BlockSpec& block : spec.blocks) block.norms = NormPlacement::around;
  set_windows(config, size_or(config, "sliding_window", 4096, kMostTokens), 2, spec.blocks);
  return spec;
}

DecoderSpec read_gemma3(const Value& config) {
  // Published files leave out what transformers' Gemma3TextConfig says.
  DecoderSpec spec =
      read_gemma_like(config, {.heads = 8, .kv_heads = 4, .head_dim = 256, .vocab = 262208});
  spec.usual_tokens = 131072;
  for (BlockSpec& block : spec.blocks) {
    block.norms = NormPlacement::around;
    block.attention.qk_norm = true;
  }
  const std::int64_t period = size_or(config, "sliding_window_pattern", 6, kMostLayers);
  set_windows(config, size_or(config, "sliding_window", 4096, kMostTokens),
              static_cast<std::size_t>(period), spec.blocks);
  return spec;
}

constexpr std::array kGemmaTypes = {DecoderType{"gemma", read_gemma},
                                    DecoderType{"gemma2", read_gemma2},
                                    DecoderType{"gemma3_text", read_gemma3}};

}  // namespace

constinit const DecoderFamily kGemmaFamily = kGemmaTypes;

}  // namespace braid
