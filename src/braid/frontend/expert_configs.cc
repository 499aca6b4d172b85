#include <string>

#include "braid/frontend/config_fields.h"
#include "braid/frontend/decoder_configs.h"

namespace braid {
namespace {

/// Routed experts under the names of the Qwen and DeepSeek configs.
ExpertsSpec read_experts(const Value& config, std::string_view count_key) {
  ExpertsSpec experts;
  experts.count = size_of(config, count_key);
  experts.top_k = config["num_experts_per_tok"].as_int_in(1, experts.count);
  experts.inner = size_of(config, "moe_intermediate_size");
  return experts;
}

/// Experts in every `decoder_sparse_step`-th block but those of `mlp_only_layers`.
void place_qwen_experts(const Value& config, const ExpertsSpec& experts,
                        std::vector<BlockSpec>& blocks) {
  const auto step =
      static_cast<std::size_t>(size_or(config, "decoder_sparse_step", 1, kMostLayers));
  for (std::size_t l = step - 1; l < blocks.size(); l += step) blocks[l].experts = experts;
  if (!has(config, "mlp_only_layers")) return;
  for (const Value& layer : config["mlp_only_layers"].elements()) {
    const std::int64_t index = layer.as_int_in(0, static_cast<std::int64_t>(blocks.size()) - 1);
    blocks[static_cast<std::size_t>(index)].experts = {};
  }
}

}  // namespace

std::int64_t read_mtp_depth(const Value& config) {
  return count_or(config, "mtp_num_layers", 0, kMostFurther);
}

DecoderSpec read_mixtral(const Value& config) {
  DecoderSpec spec = read_mistral(config);
  ExpertsSpec experts;
  experts.count = size_of(config, "num_local_experts");
  experts.top_k = config["num_experts_per_tok"].as_int_in(1, experts.count);
  experts.inner = spec.blocks.front().mlp.inner;
  for (BlockSpec& block : spec.blocks) block.experts = experts;
  return spec;
}

DecoderSpec read_gpt_oss(const Value& config) {
  DecoderSpec spec = read_llama_like(config);
  ExpertsSpec experts;
  experts.count = size_of(config, "num_local_experts");
  experts.top_k = config["num_experts_per_tok"].as_int_in(1, experts.count);
  experts.inner = spec.blocks.front().mlp.inner;
  // Both of every published one (gpt_oss in Hugging Face's transformers, GptOssExperts).
  experts.biased = experts.clamped = true;
  const bool bias = flag_or(config, "attention_bias", true);
  for (BlockSpec& block : spec.blocks) {
    block.experts = experts;
    block.attention.qkv_bias = block.attention.out_bias = bias;
  }
  set_windows(config, size_or(config, "sliding_window", 128, kMostTokens), 2, spec.blocks);
  return spec;
}

DecoderSpec read_qwen2_moe(const Value& config) {
  DecoderSpec spec = read_llama_like(config);
  const bool bias = flag_or(config, "qkv_bias", true);
  for (BlockSpec& block : spec.blocks) block.attention.qkv_bias = bias;
  ExpertsSpec experts = read_experts(config, "num_experts");
  experts.shared_inner = size_of(config, "shared_expert_intermediate_size");
  experts.shared_gate = true;
  place_qwen_experts(config, experts, spec.blocks);
  set_qwen_windows(config, spec.blocks);
  return spec;
}

DecoderSpec read_qwen3_moe(const Value& config) {
  DecoderSpec spec = read_llama_like(config);
  const bool bias = flag_or(config, "attention_bias", false);
  for (BlockSpec& block : spec.blocks) {
    block.attention.qk_norm = true;
    block.attention.qkv_bias = block.attention.out_bias = bias;
  }
  place_qwen_experts(config, read_experts(config, "num_experts"), spec.blocks);
  set_qwen_windows(config, spec.blocks);
  return spec;
}

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
  ExpertsSpec experts = read_experts(config, "n_routed_experts");
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

}  // namespace braid
