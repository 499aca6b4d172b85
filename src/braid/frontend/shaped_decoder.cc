#include "braid/frontend/shaped_decoder.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/text.h"
#include "braid/frontend/config_fields.h"
#include "braid/frontend/decoder.h"
#include "braid/frontend/hybrid_layers.h"

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

/// Sizes of state-space layers.
void check_state_space(const ModelShape& shape, const ShapeSource& source) {
  check_size(source, "number of state-space heads", shape.state_heads, kMostWidth);
  check_size(source, "width of state-space heads", shape.state_head_dim,
             kMostWidth / shape.state_heads);
  check_size(source, "state of state-space heads", shape.state_size, kMostState);
  check_size(source, "number of state-space groups", shape.state_groups, shape.state_heads);
  if (shape.state_heads % shape.state_groups != 0) {
    throw Error(Where{source.file, 0, ""},
                fmt::format("{} state-space groups do not divide {} heads", shape.state_groups,
                            shape.state_heads),
                "change one of them");
  }
}

/// A hybrid's layers are of kinds that are known, and the sizes of state-space ones are there.
void check_hybrid(const ModelShape& shape, const ShapeSource& source) {
  const std::string all = shape.layer_pattern + shape.mtp_pattern;
  const std::size_t other = all.find_first_not_of(kHybridLayers);
  if (other != std::string::npos) {
    throw Error(Where{source.file, 0, ""},
                fmt::format("the model has layers of kind {}, which are not modelled",
                            in_quotes(all.substr(other, 1))),
                kHybridLayersRemedy);
  }
  if (std::ssize(shape.layer_pattern) != shape.blocks) {
    throw Error(Where{source.file, 0, ""},
                fmt::format("{} layers in the pattern, {} said otherwise",
                            shape.layer_pattern.size(), shape.blocks),
                "change one of them");
  }
  if (all.find('M') != std::string::npos) check_state_space(shape, source);
  if (all.find('E') != std::string::npos && shape.experts == 0) {
    throw Error(Where{source.file, 0, ""}, "says no number of experts", kRemedy);
  }
  if (shape.mtp_modules > 0 && shape.mtp_pattern.empty()) {
    throw Error(Where{source.file, 0, ""}, "says no layers of its MTP modules", kRemedy);
  }
}

void check_shape(const ModelShape& shape, const ShapeSource& source) {
  if (!shape.layer_pattern.empty()) check_hybrid(shape, source);
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
  if (shape.mtp_modules > kMostMtpLayers) {
    throw Error(Where{source.file, 0, ""},
                fmt::format("predicts {} tokens beyond the next one", shape.mtp_modules),
                fmt::format("{} at most", kMostMtpLayers));
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

ExpertsSpec experts_of(const ModelShape& shape) {
  return {.count = shape.experts,
          .top_k = shape.top_k,
          .inner = shape.expert_inner,
          .shared_inner = shape.shared_inner,
          .latent = shape.expert_latent,
          .biased = shape.expert_bias,
          .clamped = shape.expert_clamp,
          .shared_gate = shape.shared_gate};
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
  block.experts = experts_of(shape);
  return block;
}

/// A layer of a hybrid: a half of a block.
BlockSpec half_of(const ModelShape& shape, char kind) {
  BlockSpec block = block_of(shape, 0);
  block.halves = halves_of(kind);
  block.experts = kind == 'E' ? experts_of(shape) : ExpertsSpec();
  if (kind != 'M') return block;
  // Megatron-LM's and Nemotron's taps and chunk are those of the spec.
  block.state_space.heads = shape.state_heads;
  block.state_space.head_dim = shape.state_head_dim;
  block.state_space.state = shape.state_size;
  block.state_space.groups = shape.state_groups;
  return block;
}

std::vector<BlockSpec> blocks_of(const ModelShape& shape) {
  std::vector<BlockSpec> blocks;
  if (shape.layer_pattern.empty()) {
    for (std::int64_t b = 0; b < shape.blocks; ++b) blocks.push_back(block_of(shape, b));
  }
  for (const char kind : shape.layer_pattern) blocks.push_back(half_of(shape, kind));
  return blocks;
}

}  // namespace

Graph graph_of_shape(const ModelShape& shape, const ShapeSource& source) {
  check_shape(shape, source);
  DecoderSpec spec;
  spec.name = source.file;
  spec.blocks = blocks_of(shape);
  spec.vocab = shape.vocab;
  spec.embedding_width = shape.embedding_width;
  spec.positions = shape.positions;
  spec.tied_embeddings = shape.tied_embeddings;
  spec.dropout = shape.dropout;
  spec.mtp.count = shape.mtp_modules;
  spec.mtp.shared = shape.mtp_shared;
  if (spec.mtp.count > 0 && shape.layer_pattern.empty()) spec.mtp.blocks = {spec.blocks.back()};
  if (spec.mtp.count > 0) {
    for (const char kind : shape.mtp_pattern) spec.mtp.blocks.push_back(half_of(shape, kind));
  }
  Graph graph = build_decoder(spec, source.seq_len);
  graph.shape = shape;
  graph.shape->first_block = 1;  // Behind the embedding, whatever the shape says.
  return graph;
}

}  // namespace braid
