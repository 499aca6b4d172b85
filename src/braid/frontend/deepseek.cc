#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "braid/frontend/config_fields.h"
#include "braid/frontend/decoder_configs.h"
#include "braid/frontend/decoder_families.h"

namespace braid {
namespace {

DecoderSpec read_deepseek(const Value& config) {
  BlockSpec block;
  const std::int64_t layers = size_of(config, "num_hidden_layers", kMostLayers);
  block.hidden = size_of(config, "hidden_size");
  block.mlp.inner = size_of(config, "intermediate_size");
  AttentionSpec& attention = block.attention;
  attention.heads = attention.kv_heads = size_of(config, "num_attention_heads");
  attention.q_rank = size_or(config, "q_lora_rank", 0);
  attention.kv_rank = size_of(config, "kv_lora_rank");
  attention.rotary_dim = size_of(config, "qk_rope_head_dim");
  attention.qk_dim = size_of(config, "qk_nope_head_dim") + attention.rotary_dim;
  attention.v_dim = size_of(config, "v_head_dim");
  check_head_width(config, "qk_nope_head_dim", attention.heads, attention.qk_dim);
  check_head_width(config, "v_head_dim", attention.heads, attention.v_dim);
  attention.qkv_bias = attention.out_bias = flag_or(config, "attention_bias", false);

  DecoderSpec spec;
  spec.blocks.assign(static_cast<std::size_t>(layers), block);
  spec.vocab = size_of(config, "vocab_size");
  spec.tied_embeddings = flag_or(config, "tie_word_embeddings", false);
  if (config["n_routed_experts"].is_null()) return spec;
  ExpertsSpec experts = read_experts(config, "n_routed_experts", "moe_intermediate_size");
  const std::int64_t shared = count_or(config, "n_shared_experts", 0);
  if (shared > kMostWidth / experts.inner) {
    config["n_shared_experts"].fail(std::to_string(shared) + " experts of width " +
                                    std::to_string(experts.inner) + " are too wide together");
  }
  experts.shared_inner = shared * experts.inner;
  const auto first = static_cast<std::size_t>(count_or(config, "first_k_dense_replace", 0));
  const auto step = static_cast<std::size_t>(size_or(config, "moe_layer_freq", 1, kMostLayers));
  for (std::size_t l = first; l < spec.blocks.size(); ++l) {
    if (l % step == 0) spec.blocks[l].experts = experts;
  }
  spec.mtp.count = read_mtp_depth(config);
  if (spec.mtp.count > 0) spec.mtp.blocks = {spec.blocks.back()};
  return spec;
}

DecoderSpec read_deepseek_v2(const Value& config) {
  DecoderSpec spec = read_deepseek(config);
  spec.router = {.scaling = 1, .groups = 1, .top_groups = 1, .greedy = true, .all_experts = true};
  return spec;
}

DecoderSpec read_deepseek_v3(const Value& config) {
  DecoderSpec spec = read_deepseek(config);
  spec.router = {.sigmoid = true, .scaling = 2.5, .groups = 8, .top_groups = 4};
  return spec;
}

constexpr std::array kDeepseekTypes = {DecoderType{"deepseek_v2", read_deepseek_v2},
                                       DecoderType{"deepseek_v3", read_deepseek_v3},
                                       DecoderType{"kimi_k2", read_deepseek_v3}};

}  // namespace

constinit const DecoderFamily kDeepseekFamily = kDeepseekTypes;

}  // namespace braid
