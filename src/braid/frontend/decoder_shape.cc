#include "braid/frontend/decoder_shape.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "braid/frontend/config_fields.h"

namespace braid {
namespace {

double number_or(const Value& config, std::string_view key, double otherwise) {
  constexpr double kMostNumber = 1e12;
  return has(config, key) ? config[key].as_double_in(0, kMostNumber) : otherwise;
}

std::string name_of_function(const FeedForwardSpec& mlp) {
  switch (mlp.activation) {
    case Activation::relu:
      return mlp.gated ? "reglu" : "relu";
    case Activation::relu_squared:
      return mlp.gated ? "gated_relu_squared" : "relu_squared";
    case Activation::silu:
      return mlp.gated ? "swiglu" : "silu";
    case Activation::gelu:
      break;
  }
  return mlp.gated ? "geglu" : "gelu";
}

std::string_view name_of_norms(NormPlacement norms) {
  switch (norms) {
    case NormPlacement::after:
      return "after";
    case NormPlacement::around:
      return "around";
    case NormPlacement::parallel:
      return "parallel";
    case NormPlacement::before:
      break;
  }
  return "before";
}

void set_attention(const AttentionSpec& attention, ModelShape& shape) {
  shape.heads = attention.heads;
  shape.kv_heads = attention.kv_heads;
  shape.head_dim = attention.v_dim;
  shape.causal = attention.causal;
  shape.qkv_bias = attention.qkv_bias;
  shape.linear_bias = attention.out_bias;
  shape.qk_norm = attention.qk_norm;
  shape.rotary = attention.rotary_dim > 0;
  shape.rotary_dim = attention.rotary_dim;
  shape.latent_attention = attention.kv_rank > 0;
  if (!shape.latent_attention) return;
  shape.q_rank = attention.q_rank;
  shape.kv_rank = attention.kv_rank;
  shape.qk_dim = attention.qk_dim;
}

void set_experts(const ExpertsSpec& experts, ModelShape& shape) {
  shape.experts = experts.count;
  shape.top_k = experts.top_k;
  shape.expert_inner = experts.inner;
  shape.shared_inner = experts.shared_inner;
  shape.shared_gate = experts.shared_gate;
  shape.expert_latent = experts.latent;
  shape.expert_bias = experts.biased;
  shape.expert_clamp = experts.clamped;
}

void set_state_space(const StateSpaceSpec& spec, ModelShape& shape) {
  shape.state_heads = spec.heads;
  shape.state_head_dim = spec.head_dim;
  shape.state_size = spec.state;
  shape.state_groups = spec.groups;
}

char letter_of(const BlockSpec& block) {
  if (block.state_space.heads > 0) return 'M';
  if (block.halves == Halves::mixing) return '*';
  return block.experts.count > 0 ? 'E' : '-';
}

std::string pattern_of(const std::vector<BlockSpec>& blocks) {
  std::string pattern;
  for (const BlockSpec& block : blocks) pattern += letter_of(block);
  return pattern;
}

/// "1" for each block that `has_it`.
template <typename Test>
std::string marks(const std::vector<BlockSpec>& blocks, const Test& has_it) {
  std::string text;
  for (const BlockSpec& block : blocks) text += has_it(block) ? '1' : '0';
  return text;
}

/// Blocks of one kind each have what the kind says; the marks tell which they are.
void set_blocks(const DecoderSpec& spec, ModelShape& shape) {
  const BlockSpec& first = spec.blocks.front();
  shape.first_block = 1;
  shape.blocks = static_cast<std::int64_t>(spec.blocks.size());
  shape.hidden = first.hidden;
  shape.rms = first.rms;
  shape.norms = name_of_norms(first.norms);
  shape.gated = first.mlp.gated;
  shape.activation = name_of_function(first.mlp);
  for (const BlockSpec& block : spec.blocks) {
    shape.dropout = shape.dropout || block.dropout;
    shape.window = std::max(shape.window, block.attention.window);
    const bool mixes = block.halves != Halves::feeding;
    const bool feeds = block.halves != Halves::mixing;
    if (mixes && block.state_space.heads > 0) set_state_space(block.state_space, shape);
    if (mixes && block.state_space.heads == 0) set_attention(block.attention, shape);
    if (feeds && block.experts.count > 0) set_experts(block.experts, shape);
    if (feeds && block.experts.count == 0) shape.inner = block.mlp.inner;
  }
  for (const BlockSpec& block : spec.blocks) {
    shape.linear_bias = shape.linear_bias || (block.mlp.bias && block.experts.count == 0);
  }
  const auto mixed = [](const std::string& text) {
    return text.find('0') != std::string::npos && text.find('1') != std::string::npos;
  };
  if (first.halves != Halves::both) {
    shape.layer_pattern = pattern_of(spec.blocks);
    return;
  }
  const auto is_windowed = [](const BlockSpec& block) { return block.attention.window > 0; };
  const auto has_experts = [](const BlockSpec& block) { return block.experts.count > 0; };
  if (const std::string text = marks(spec.blocks, is_windowed); mixed(text)) {
    shape.windowed_blocks = text;
  }
  const std::string sparse = marks(spec.blocks, has_experts);
  if (!mixed(sparse)) return;
  const std::size_t dense = sparse.find('1');
  shape.dense_blocks = static_cast<std::int64_t>(dense);
  if (sparse.find('0', dense) != std::string::npos) shape.expert_blocks = sparse;
}

void set_rotation(const Value& config, ModelShape& shape) {
  if (!shape.rotary) return;
  const Value both = config["rope_parameters"];
  const bool joined = both.exists() && both.is_object();
  shape.rotary_base = number_or(config, "rotary_emb_base", 10000);
  shape.rotary_base = number_or(joined ? both : config, "rope_theta", shape.rotary_base);
  const Value scaling = joined ? both : config["rope_scaling"];
  if (!scaling.exists() || !scaling.is_object()) return;
  const std::string kind = scaling["rope_type"].string_or(scaling["type"].string_or("default"));
  if (kind == "default") return;
  RotaryScaling& to = shape.rotary_scaling;
  to.kind = kind;
  to.factor = number_or(scaling, "factor", to.factor);
  to.original_positions = count_or(scaling, "original_max_position_embeddings", 0, kMostTokens);
  to.low_frequency = number_or(scaling, "low_freq_factor", to.low_frequency);
  to.high_frequency = number_or(scaling, "high_freq_factor", to.high_frequency);
  to.beta_fast = number_or(scaling, "beta_fast", to.beta_fast);
  to.beta_slow = number_or(scaling, "beta_slow", to.beta_slow);
  to.mscale = number_or(scaling, "mscale", to.mscale);
  to.mscale_all_dim = number_or(scaling, "mscale_all_dim", to.mscale_all_dim);
}

/// Groups of experts of which `topk_group` are looked at.
void set_groups(const Value& config, std::int64_t groups, std::int64_t chosen, ModelShape& shape) {
  // Made-up models without the key may have fewer experts than usual.
  if (!has(config, "n_group") && shape.experts % groups != 0) return;
  groups = size_or(config, "n_group", groups);
  chosen = size_or(config, "topk_group", chosen);
  if (groups == 1) return;
  check_divides(config, "n_group", groups, shape.experts, "the routed experts");
  if (chosen > groups) config["topk_group"].fail("there are fewer groups: n_group");
  shape.router_groups = groups;
  shape.router_top_groups = chosen;
}

void set_router(const Value& config, const RouterSpec& router, ModelShape& shape) {
  if (shape.experts == 0) return;
  shape.router_score = config["scoring_func"].string_or(router.sigmoid ? "sigmoid" : "softmax");
  if (shape.router_score != "sigmoid" && shape.router_score != "softmax") {
    config["scoring_func"].fail("unknown scores '" + shape.router_score + "'",
                                "use softmax or sigmoid");
  }
  shape.router_bias = router.sigmoid;
  if (router.scaling > 0) {
    shape.router_scaling = number_or(config, "routed_scaling_factor", router.scaling);
  }
  const bool grouped = router.groups > 0 &&
                       !(router.greedy && config["topk_method"].string_or("greedy") == "greedy");
  if (grouped) set_groups(config, router.groups, router.top_groups, shape);
  shape.router_all_experts = router.all_experts && shape.router_score == "softmax" &&
                             !flag_or(config, "norm_topk_prob", false);
}

}  // namespace

ModelShape decoder_shape(const Value& config, const DecoderSpec& spec) {
  ModelShape shape;
  shape.model_type = config["model_type"].as_string();
  set_blocks(spec, shape);
  shape.vocab = spec.vocab;
  shape.positions = spec.positions > 0 ? spec.positions + spec.unused_positions : 0;
  shape.tied_embeddings = spec.tied_embeddings;
  if (spec.embedding_width != shape.hidden) shape.embedding_width = spec.embedding_width;
  for (const char* key : {"rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon"}) {
    shape.norm_epsilon = number_or(config, key, shape.norm_epsilon);
  }
  shape.norm_from_one = spec.norm_from_one;
  shape.soft_capped =
      has(config, "attn_logit_softcapping") || has(config, "final_logit_softcapping");
  shape.attention_sinks = spec.attention_sinks;
  set_rotation(config, shape);
  set_router(config, spec.router, shape);
  shape.mtp_modules = spec.mtp.count;
  shape.mtp_shared = spec.mtp.shared;
  if (spec.mtp.count > 0 && !shape.layer_pattern.empty()) {
    shape.mtp_pattern = pattern_of(spec.mtp.blocks);
  }
  return shape;
}

}  // namespace braid
