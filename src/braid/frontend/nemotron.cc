#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "braid/frontend/config_fields.h"
#include "braid/frontend/decoder_configs.h"
#include "braid/frontend/decoder_families.h"
#include "braid/frontend/hybrid_layers.h"

namespace braid {
namespace {

StateSpaceSpec read_state_space(const Value& config) {
  StateSpaceSpec spec;
  spec.heads = size_of(config, "mamba_num_heads");
  spec.head_dim = size_of(config, "mamba_head_dim");
  check_head_width(config, "mamba_head_dim", spec.heads, spec.head_dim);
  spec.state = size_of(config, "ssm_state_size", kMostState);
  spec.groups = size_or(config, "n_groups", 1);
  check_divides(config, "n_groups", spec.groups, spec.heads, "mamba_num_heads");
  spec.kernel = size_or(config, "conv_kernel", 4, kMostState);
  spec.chunk = size_or(config, "chunk_size", 128, kMostState);
  return spec;
}

ExpertsSpec read_hybrid_experts(const Value& config) {
  ExpertsSpec experts = read_experts(config, "n_routed_experts", "moe_intermediate_size");
  experts.latent = count_or(config, "moe_latent_size", 0);
  if (count_or(config, "n_shared_experts", 0) > 0) {
    experts.shared_inner = size_of(config, "moe_shared_expert_intermediate_size");
  }
  return experts;
}

/// Layers like `block` of the kinds that the pattern under `key` has.
std::vector<BlockSpec> read_pattern(const Value& config, std::string_view key,
                                    const BlockSpec& block) {
  const std::string pattern(config[key].as_string());
  if (pattern.empty()) config[key].fail("there are no layers");
  check_layer_count(config, key, static_cast<std::int64_t>(pattern.size()));
  std::vector<BlockSpec> layers;
  layers.reserve(pattern.size());
  for (const char kind : pattern) {
    BlockSpec& layer = layers.emplace_back(block);
    layer.halves = halves_of(kind);
    if (kind == 'M') {
      layer.state_space = read_state_space(config);
    } else if (kind == 'E') {
      layer.experts = read_hybrid_experts(config);
    } else if (kind != '*' && kind != '-') {
      config[key].fail(std::string("'") + kind + "' is no kind of layer", kHybridLayersRemedy);
    }
  }
  return layers;
}

DecoderSpec read_nemotron_h(const Value& config) {
  BlockSpec block;
  block.hidden = size_of(config, "hidden_size");
  block.mlp.gated = false;
  block.mlp.activation = Activation::relu_squared;
  block.mlp.inner = size_of(config, "intermediate_size");
  AttentionSpec& attention = block.attention;
  attention.heads = size_of(config, "num_attention_heads");
  attention.kv_heads = size_or(config, "num_key_value_heads", attention.heads);
  check_divides(config, "num_key_value_heads", attention.kv_heads, attention.heads,
                "num_attention_heads");
  attention.qk_dim = attention.v_dim =
      size_or(config, "head_dim", std::max<std::int64_t>(1, block.hidden / attention.heads));
  check_head_width(config, "head_dim", attention.heads, attention.qk_dim);

  DecoderSpec spec;
  spec.vocab = size_of(config, "vocab_size");
  spec.tied_embeddings = flag_or(config, "tie_word_embeddings", false);
  spec.blocks = read_pattern(config, "hybrid_override_pattern", block);
  spec.mtp.count = read_mtp_depth(config);
  if (spec.mtp.count > 0) {
    spec.mtp.blocks = read_pattern(config, "mtp_hybrid_override_pattern", block);
    spec.mtp.shared = flag_or(config, "mtp_use_repeated_layer", false);
  }
  spec.router = {.sigmoid = true, .scaling = 1, .groups = 1, .top_groups = 1};
  return spec;
}

constexpr std::array kNemotronTypes = {DecoderType{"nemotron_h", read_nemotron_h}};

}  // namespace

constinit const DecoderFamily kNemotronFamily = kNemotronTypes;

}  // namespace braid
