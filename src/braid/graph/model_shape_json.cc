#include "braid/graph/model_shape_json.h"

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "braid/base/quantity.h"

namespace braid {
namespace {

/// Calls `visit` with the name and place of what every shape says.
template <typename Shape, typename Visit>
void each_sure_field(Shape& shape, const Visit& visit) {
  visit("first_block", shape.first_block);
  visit("blocks", shape.blocks);
  visit("dense_blocks", shape.dense_blocks);
  visit("hidden", shape.hidden);
  visit("heads", shape.heads);
  visit("kv_heads", shape.kv_heads);
  visit("head_dim", shape.head_dim);
  visit("inner", shape.inner);
  visit("vocab", shape.vocab);
  visit("positions", shape.positions);
  visit("window", shape.window);
  visit("experts", shape.experts);
  visit("top_k", shape.top_k);
  visit("expert_inner", shape.expert_inner);
  visit("shared_inner", shape.shared_inner);
  visit("causal", shape.causal);
  visit("rotary", shape.rotary);
  visit("latent_attention", shape.latent_attention);
  visit("gated", shape.gated);
  visit("rms", shape.rms);
  visit("qkv_bias", shape.qkv_bias);
  visit("linear_bias", shape.linear_bias);
  visit("qk_norm", shape.qk_norm);
  visit("tied_embeddings", shape.tied_embeddings);
  visit("dropout", shape.dropout);
  visit("shared_gate", shape.shared_gate);
  visit("activation", shape.activation);
}

template <typename Shape, typename Visit>
void each_stated_field(Shape& shape, const Visit& visit) {
  visit("model_type", shape.model_type);
  visit("norms", shape.norms);
  visit("norm_epsilon", shape.norm_epsilon);
  visit("norm_from_one", shape.norm_from_one);
  visit("embedding_width", shape.embedding_width);
  visit("windowed_blocks", shape.windowed_blocks);
  visit("expert_blocks", shape.expert_blocks);
  visit("attention_sinks", shape.attention_sinks);
  visit("soft_capped", shape.soft_capped);
  visit("q_rank", shape.q_rank);
  visit("kv_rank", shape.kv_rank);
  visit("qk_dim", shape.qk_dim);
  visit("rotary_dim", shape.rotary_dim);
  visit("rotary_base", shape.rotary_base);
  visit("router_score", shape.router_score);
  visit("router_all_experts", shape.router_all_experts);
  visit("router_groups", shape.router_groups);
  visit("router_top_groups", shape.router_top_groups);
  visit("router_scaling", shape.router_scaling);
  visit("router_bias", shape.router_bias);
  visit("expert_latent", shape.expert_latent);
  visit("expert_bias", shape.expert_bias);
  visit("expert_clamp", shape.expert_clamp);
  visit("layer_pattern", shape.layer_pattern);
  visit("state_heads", shape.state_heads);
  visit("state_head_dim", shape.state_head_dim);
  visit("state_size", shape.state_size);
  visit("state_groups", shape.state_groups);
  visit("mtp_modules", shape.mtp_modules);
  visit("mtp_pattern", shape.mtp_pattern);
  visit("mtp_shared", shape.mtp_shared);
}

template <typename Scaling, typename Visit>
void each_scaling_field(Scaling& scaling, const Visit& visit) {
  visit("kind", scaling.kind);
  visit("factor", scaling.factor);
  visit("original_positions", scaling.original_positions);
  visit("low_frequency", scaling.low_frequency);
  visit("high_frequency", scaling.high_frequency);
  visit("beta_fast", scaling.beta_fast);
  visit("beta_slow", scaling.beta_slow);
  visit("mscale", scaling.mscale);
  visit("mscale_all_dim", scaling.mscale_all_dim);
}

/// Reads one field of a document into its place.
class FieldReader {
 public:
  explicit FieldReader(const Value& value) : value_(value) {}
  void operator()(const char* key, std::int64_t& count) const {
    if (value_[key].exists()) count = value_[key].as_int_in(0, kMost);
  }
  void operator()(const char* key, double& number) const {
    if (value_[key].exists()) number = value_[key].as_double_in(0, kMostStated);
  }
  void operator()(const char* key, bool& flag) const { flag = value_[key].bool_or(flag); }
  void operator()(const char* key, std::string& text) const { text = value_[key].string_or(text); }

 private:
  static constexpr std::int64_t kMost = std::int64_t{1} << 40;
  const Value& value_;
};

}  // namespace

Json to_json(const ModelShape& shape) {
  Json json = Json::object();
  each_sure_field(shape, [&json](const char* key, const auto& value) { json[key] = value; });
  // Read off the operators, a shape has none of these.
  if (shape.model_type.empty()) return json;
  each_stated_field(shape, [&json](const char* key, const auto& value) { json[key] = value; });
  if (!shape.rotary_scaling.kind.empty()) {
    Json scaling = Json::object();
    each_scaling_field(shape.rotary_scaling,
                       [&scaling](const char* key, const auto& value) { scaling[key] = value; });
    json["rotary_scaling"] = std::move(scaling);
  }
  return json;
}

ModelShape shape_from_json(const Value& value) {
  ModelShape shape;
  std::vector<std::string_view> keys{"rotary_scaling"};
  const auto note = [&keys](const char* key, const auto&) { keys.emplace_back(key); };
  each_sure_field(shape, note);
  each_stated_field(shape, note);
  value.expect_only(keys);
  const FieldReader reader(value);
  each_sure_field(shape, reader);
  each_stated_field(shape, reader);
  if (const Value scaling = value["rotary_scaling"]; scaling.exists()) {
    std::vector<std::string_view> inner;
    each_scaling_field(shape.rotary_scaling,
                       [&inner](const char* key, const auto&) { inner.emplace_back(key); });
    scaling.expect_only(inner);
    each_scaling_field(shape.rotary_scaling, FieldReader(scaling));
  }
  return shape;
}

}  // namespace braid
