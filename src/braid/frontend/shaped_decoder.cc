#include "braid/frontend/shaped_decoder.h"

#include <algorithm>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/frontend/config_fields.h"
#include "braid/frontend/decoder.h"

namespace braid {
namespace {

constexpr const char* kRemedy = "name the model, MODEL, or put its config.json beside the file";
constexpr std::int64_t kMostExperts = 1 << 16;

void check_size(const ShapeSource& source, const char* what, std::int64_t size, std::int64_t most) {
  if (size < 1) throw Error(Where{source.file, 0, ""}, fmt::format("says no {}", what), kRemedy);
  if (size > most) {
    throw Error(Where{source.file, 0, ""}, fmt::format("{} {} is too large", what, size), kRemedy);
  }
}

void check_shape(const ModelShape& shape, const ShapeSource& source) {
  if (!shape.layer_pattern.empty() || shape.state_heads > 0) {
    throw Error(Where{source.file, 0, ""}, "the model has state-space layers", kRemedy);
  }
  check_size(source, "number of layers", shape.blocks, kMostLayers);
  check_size(source, "hidden size", shape.hidden, kMostWidth);
  check_size(source, "number of attention heads", shape.heads, kMostWidth);
  check_size(source, "width of heads", shape.head_dim, kMostWidth / shape.heads);
  check_size(source, "width of heads", shape.latent_attention ? shape.qk_dim : 1,
             kMostWidth / shape.heads);
  check_size(source, "number of key and value heads", shape.kv_heads, shape.heads);
  if (shape.heads % shape.kv_heads != 0) {
    throw Error(
        Where{source.file, 0, ""},
        fmt::format("{} key and value heads do not divide {} heads", shape.kv_heads, shape.heads),
        "change one of them");
  }
  if (shape.experts == 0 || shape.dense_blocks > 0 || !shape.expert_blocks.empty()) {
    check_size(source, "width of the feed-forward network", shape.inner, kMostWidth);
  }
  if (shape.latent_attention) {
    check_size(source, "rank of keys and values", shape.kv_rank, kMostWidth);
    check_size(source, "rank of queries", std::max<std::int64_t>(1, shape.q_rank), kMostWidth);
  }
  if (shape.mtp_modules > kMostFurther) {
    throw Error(Where{source.file, 0, ""},
                fmt::format("predicts {} tokens beyond the next one", shape.mtp_modules),
                fmt::format("{} at most", kMostFurther));
  }
  check_size(source, "size of the vocabulary", shape.vocab, kMostWidth);
  const std::int64_t longest = shape.positions > 0 ? shape.positions : kMostTokens;
  check_size(source, "sequence length", source.seq_len, longest);
  if (shape.experts == 0) return;
  check_size(source, "number of experts", shape.experts, kMostExperts);
  check_size(source, "number of experts of a token", shape.top_k, shape.experts);
  check_size(source, "width of experts", shape.expert_inner, kMostWidth);
}

Activation activation_of(const ModelShape& shape) {
  if (shape.activation == "relu" || shape.activation == "reglu") return Activation::relu;
  if (shape.activation == "gelu" || shape.activation == "geglu") return Activation::gelu;
  const bool squared = shape.activation.ends_with("relu_squared");
  return squared ? Activation::relu_squared : Activation::silu;
}

NormPlacement placement_of(const ModelShape& shape) {
  if (shape.norms == "after") return NormPlacement::after;
  if (shape.norms == "around") return NormPlacement::around;
  return shape.norms == "parallel" ? NormPlacement::parallel : NormPlacement::before;
}

AttentionSpec attention_of(const ModelShape& shape) {
  AttentionSpec attention;
  attention.heads = shape.heads;
  attention.kv_heads = shape.kv_heads;
  attention.qk_dim = shape.latent_attention ? shape.qk_dim : shape.head_dim;
  attention.v_dim = shape.head_dim;
  const std::int64_t rotated = shape.rotary_dim > 0 ? shape.rotary_dim : attention.qk_dim;
  attention.rotary_dim = shape.rotary ? std::min(rotated, attention.qk_dim) : 0;
  attention.window = shape.window;
  attention.causal = shape.causal;
  attention.qkv_bias = shape.qkv_bias;
  attention.out_bias = shape.linear_bias;
  attention.qk_norm = shape.qk_norm;
  attention.dropout = shape.dropout;
  attention.q_rank = shape.q_rank;
  attention.kv_rank = shape.kv_rank;
  return attention;
}

/// Whether block `b` is marked; all are where there are no marks.
bool is_marked(const std::string& marks, std::int64_t b) {
  const auto at = static_cast<std::size_t>(b);
  return at >= marks.size() || marks[at] == '1';
}

BlockSpec block_of(const ModelShape& shape, std::int64_t b) {
  BlockSpec block;
  block.hidden = shape.hidden;
  block.rms = shape.rms;
  block.norms = placement_of(shape);
  block.dropout = shape.dropout;
  block.attention = attention_of(shape);
  if (!is_marked(shape.windowed_blocks, b)) block.attention.window = 0;
  block.mlp = {.inner = std::max<std::int64_t>(1, shape.inner),
               .gated = shape.gated,
               .activation = activation_of(shape),
               .bias = shape.linear_bias};
  if (shape.experts == 0 || b < shape.dense_blocks || !is_marked(shape.expert_blocks, b)) {
    return block;
  }
  block.experts = {.count = shape.experts,
                   .top_k = shape.top_k,
                   .inner = shape.expert_inner,
                   .shared_inner = shape.shared_inner,
                   .latent = shape.expert_latent,
                   .biased = shape.expert_bias,
                   .clamped = shape.expert_clamp,
                   .shared_gate = shape.shared_gate};
  return block;
}

}  // namespace

Graph graph_of_shape(const ModelShape& shape, const ShapeSource& source) {
  check_shape(shape, source);
  DecoderSpec spec;
  spec.name = source.file;
  for (std::int64_t b = 0; b < shape.blocks; ++b) spec.blocks.push_back(block_of(shape, b));
  spec.vocab = shape.vocab;
  spec.embedding_width = shape.embedding_width;
  spec.positions = shape.positions;
  spec.tied_embeddings = shape.tied_embeddings;
  spec.dropout = shape.dropout;
  spec.mtp.count = shape.mtp_modules;
  spec.mtp.shared = shape.mtp_shared;
  if (spec.mtp.count > 0) spec.mtp.blocks = {spec.blocks.back()};
  Graph graph = build_decoder(spec, source.seq_len);
  graph.shape = shape;
  return graph;
}

}  // namespace braid
