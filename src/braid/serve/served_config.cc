#include "braid/serve/served_config.h"

#include <algorithm>
#include <cstdint>

#include "braid/base/error.h"
#include "braid/frontend/hugging_face.h"

namespace braid {
namespace {

constexpr std::int64_t kMostSize = std::int64_t{1} << 28;

double size_in(const Value& config, std::string_view key) {
  return static_cast<double>(config[key].as_int_in(1, kMostSize));
}

ServedModel common(const Value& config, const std::string& name) {
  ServedModel model;
  model.name = name;
  model.type = std::string(config["model_type"].as_string());
  model.hidden = size_in(config, "hidden_size");
  model.vocab = size_in(config, "vocab_size");
  model.tied_embeddings = config["tie_word_embeddings"].bool_or(false);
  model.positions = config["max_position_embeddings"].as_int_in(1, kMostSize);
  return model;
}

ServedLayer grouped_attention(const Value& config) {
  ServedLayer layer;
  layer.mixing = TokenMixing::attention;
  layer.heads = size_in(config, "num_attention_heads");
  layer.kv_heads = size_in(config, "num_key_value_heads");
  layer.head_dim = size_in(config, "head_dim");
  return layer;
}

void set_experts(const Value& config, std::string_view count, std::string_view inner,
                 ServedLayer& layer) {
  layer.gated = true;
  layer.experts = size_in(config, count);
  layer.top_k = size_in(config, "num_experts_per_tok");
  layer.expert_inner = size_in(config, inner);
}

/// All layers attend and have experts.
ServedModel read_minimax(const Value& config, const std::string& name) {
  ServedModel model = common(config, name);
  ServedLayer layer = grouped_attention(config);
  set_experts(config, "num_local_experts", "intermediate_size", layer);
  layer.count = config["num_hidden_layers"].as_int_in(1, kMostSize);
  model.layers = {layer};
  return model;
}

/// Latent attention of chosen tokens, experts after the first layers.
ServedModel read_glm_sparse(const Value& config, const std::string& name) {
  ServedModel model = common(config, name);
  ServedLayer layer;
  layer.mixing = TokenMixing::latent;
  layer.heads = layer.kv_heads = size_in(config, "num_attention_heads");
  layer.q_rank = size_in(config, "q_lora_rank");
  layer.kv_rank = size_in(config, "kv_lora_rank");
  layer.rotary_dim = size_in(config, "qk_rope_head_dim");
  layer.qk_dim = size_in(config, "qk_nope_head_dim") + layer.rotary_dim;
  layer.v_dim = size_in(config, "v_head_dim");
  layer.indexed_tokens = size_in(config, "index_topk");
  layer.index_heads = size_in(config, "index_n_heads");
  layer.index_dim = size_in(config, "index_head_dim");
  ServedLayer dense = layer;
  dense.gated = true;
  dense.inner = size_in(config, "intermediate_size");
  dense.count = config["first_k_dense_replace"].as_int_in(0, kMostSize);
  set_experts(config, "n_routed_experts", "moe_intermediate_size", layer);
  layer.shared_inner = layer.expert_inner * size_in(config, "n_shared_experts");
  layer.count = config["num_hidden_layers"].as_int_in(dense.count + 1, kMostSize) - dense.count;
  if (dense.count > 0) model.layers.push_back(dense);
  model.layers.push_back(layer);
  return model;
}

/// Every `full_attention_interval`-th layer attends, the others have a gated delta rule.
ServedModel read_qwen_hybrid(const Value& config, const std::string& name) {
  ServedModel model = common(config, name);
  const std::int64_t layers = config["num_hidden_layers"].as_int_in(1, kMostSize);
  ServedLayer attention = grouped_attention(config);
  attention.gated_output = config["attn_output_gate"].bool_or(true);
  attention.count = layers / config["full_attention_interval"].as_int_in(1, layers);
  ServedLayer delta;
  delta.mixing = TokenMixing::delta_rule;
  delta.state_heads = size_in(config, "linear_num_value_heads");
  delta.key_heads = size_in(config, "linear_num_key_heads");
  delta.key_dim = size_in(config, "linear_key_head_dim");
  delta.value_dim = size_in(config, "linear_value_head_dim");
  delta.count = layers - attention.count;
  for (ServedLayer* layer : {&attention, &delta}) {
    set_experts(config, "num_experts", "moe_intermediate_size", *layer);
    layer->shared_inner = size_in(config, "shared_expert_intermediate_size");
    if (layer->count > 0) model.layers.push_back(*layer);
  }
  return model;
}

/// Models that are served and that no graph is built of.
struct ServedType {
  std::string_view model_type;
  ServedModel (*read)(const Value& config, const std::string& name);
};
constexpr ServedType kServedTypes[] = {{"minimax_m2", read_minimax},
                                       {"glm_moe_dsa", read_glm_sparse},
                                       {"qwen3_5_moe_text", read_qwen_hybrid}};

}  // namespace

ServedModel served_from_config(const Value& config, const std::string& name) {
  const std::string_view type = config["model_type"].as_string();
  for (const ServedType& each : kServedTypes) {
    if (each.model_type == type) return each.read(config, name);
  }
  const Graph graph = graph_from_config(config, name, {});
  if (!graph.shape) config["model_type"].fail("this is no language model");
  ServedModel model = served_model(*graph.shape, name);
  if (model.positions == 0) model.positions = graph.seq_len;
  return model;
}

}  // namespace braid
