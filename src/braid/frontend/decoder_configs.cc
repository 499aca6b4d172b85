#include "braid/frontend/decoder_configs.h"

#include <string>
#include <vector>

#include "braid/frontend/config_fields.h"

namespace braid {
namespace {

/// As size_of, but `otherwise` when the field is missing and that is not 0.
std::int64_t size_with_default(const Value& config, std::string_view key, std::int64_t otherwise) {
  return otherwise > 0 ? size_or(config, key, otherwise) : size_of(config, key);
}

/// Heads, their size, and grouping, as Llama-like configs give them.
void read_heads(const Value& config, const UsualSizes& usual, BlockSpec& block) {
  AttentionSpec& attention = block.attention;
  attention.heads = size_with_default(config, "num_attention_heads", usual.heads);
  attention.kv_heads =
      size_or(config, "num_key_value_heads", usual.kv_heads > 0 ? usual.kv_heads : attention.heads);
  check_divides(config, "num_key_value_heads", attention.kv_heads, attention.heads,
                "num_attention_heads");
  if (has(config, "head_dim") || usual.head_dim > 0) {
    attention.qk_dim = size_with_default(config, "head_dim", usual.head_dim);
    check_head_width(config, "head_dim", attention.heads, attention.qk_dim);
  } else {
    check_divides(config, "num_attention_heads", attention.heads, block.hidden,
                  "the hidden size (give head_dim)");
    attention.qk_dim = block.hidden / attention.heads;
  }
  attention.v_dim = attention.qk_dim;
}

/// Part of each head that rotates.
std::int64_t rotated(const AttentionSpec& attention, double share) {
  return static_cast<std::int64_t>(static_cast<double>(attention.qk_dim) * share);
}

/// A block of the GPT kind: layer norms and biases, a plain feed-forward network.
BlockSpec gpt_block(std::int64_t hidden, std::int64_t heads, std::int64_t inner) {
  BlockSpec block;
  block.hidden = hidden;
  block.rms = false;
  block.attention.heads = block.attention.kv_heads = heads;
  block.attention.qk_dim = block.attention.v_dim = hidden / heads;
  block.attention.qkv_bias = block.attention.out_bias = true;
  block.mlp = {.inner = inner, .gated = false, .activation = Activation::gelu, .bias = true};
  return block;
}

}  // namespace

void set_windows(const Value& config, std::int64_t window, std::size_t period,
                 std::vector<BlockSpec>& blocks) {
  const Value types = config["layer_types"];
  if (!types.exists() || types.is_null()) {
    for (std::size_t l = 0; l < blocks.size(); ++l) {
      blocks[l].attention.window = (l + 1) % period == 0 ? 0 : window;
    }
    return;
  }
  if (types.size() != blocks.size()) {
    types.fail(std::to_string(types.size()) + " types for " + std::to_string(blocks.size()) +
               " layers");
  }
  const std::vector<Value> elements = types.elements();
  for (std::size_t l = 0; l < blocks.size(); ++l) {
    const std::string_view type = elements[l].as_string();
    if (type != "sliding_attention" && type != "full_attention") {
      elements[l].fail("unknown kind of attention '" + std::string(type) + "'",
                       "use sliding_attention or full_attention");
    }
    blocks[l].attention.window = type == "sliding_attention" ? window : 0;
  }
}

DecoderSpec read_llama_like(const Value& config, const UsualSizes& usual) {
  BlockSpec block;
  const std::int64_t layers = size_of(config, "num_hidden_layers", kMostLayers);
  block.hidden = size_of(config, "hidden_size");
  block.mlp.inner = size_of(config, "intermediate_size");
  read_heads(config, usual, block);
  block.attention.rotary_dim = block.attention.qk_dim;
  DecoderSpec spec;
  spec.blocks.assign(static_cast<std::size_t>(layers), block);
  spec.vocab = size_with_default(config, "vocab_size", usual.vocab);
  spec.tied_embeddings = flag_or(config, "tie_word_embeddings", false);
  return spec;
}

void set_qwen_windows(const Value& config, std::vector<BlockSpec>& blocks) {
  if (!flag_or(config, "use_sliding_window", false)) return;
  const std::int64_t window = size_or(config, "sliding_window", 4096, kMostTokens);
  if (has(config, "layer_types")) return set_windows(config, window, 1, blocks);
  const std::int64_t first = count_or(config, "max_window_layers", 28, kMostLayers);
  for (auto l = static_cast<std::size_t>(first); l < blocks.size(); ++l) {
    blocks[l].attention.window = window;
  }
}

DecoderSpec read_llama(const Value& config) {
  DecoderSpec spec = read_llama_like(config);
  for (BlockSpec& block : spec.blocks) {
    block.attention.qkv_bias = block.attention.out_bias = flag_or(config, "attention_bias", false);
    block.mlp.bias = flag_or(config, "mlp_bias", false);
  }
  return spec;
}

DecoderSpec read_mistral(const Value& config) {
  DecoderSpec spec = read_llama_like(config);
  const std::int64_t window = size_or(config, "sliding_window", 0, kMostTokens);
  for (BlockSpec& block : spec.blocks) block.attention.window = window;
  return spec;
}

DecoderSpec read_qwen2(const Value& config) {
  DecoderSpec spec = read_llama_like(config);
  for (BlockSpec& block : spec.blocks) block.attention.qkv_bias = true;
  set_qwen_windows(config, spec.blocks);
  return spec;
}

DecoderSpec read_qwen3(const Value& config) {
  DecoderSpec spec = read_llama_like(config);
  for (BlockSpec& block : spec.blocks) block.attention.qk_norm = true;
  set_qwen_windows(config, spec.blocks);
  return spec;
}

DecoderSpec read_phi3(const Value& config) {
  DecoderSpec spec = read_mistral(config);
  const double share = share_or(config, "partial_rotary_factor", 1);
  spec.dropout = any_dropout(config, {"embd_pdrop"}, 0);
  const bool dropout = any_dropout(config, {"resid_pdrop"}, 0);
  const bool attention_dropout = any_dropout(config, {"attention_dropout"}, 0);
  for (BlockSpec& block : spec.blocks) {
    block.attention.rotary_dim = rotated(block.attention, share);
    block.attention.dropout = attention_dropout;
    block.dropout = dropout;
  }
  return spec;
}

namespace {

DecoderSpec read_gemma_like(const Value& config, const UsualSizes& usual) {
  DecoderSpec spec = read_llama_like(config, usual);
  const bool bias = flag_or(config, "attention_bias", false);
  for (BlockSpec& block : spec.blocks) {
    block.attention.qkv_bias = block.attention.out_bias = bias;
    block.mlp.activation = Activation::gelu;
  }
  spec.tied_embeddings = flag_or(config, "tie_word_embeddings", true);
  return spec;
}

}  // namespace

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

DecoderSpec read_gpt2(const Value& config) {
  const std::int64_t layers = size_of(config, "n_layer", kMostLayers);
  const std::int64_t hidden = size_of(config, "n_embd");
  const std::int64_t heads = size_of(config, "n_head");
  check_divides(config, "n_head", heads, hidden, "n_embd");
  BlockSpec block = gpt_block(hidden, heads, size_or(config, "n_inner", 4 * hidden));
  block.dropout = block.attention.dropout = any_dropout(config, {"resid_pdrop"}, 0.1);
  DecoderSpec spec;
  spec.blocks.assign(static_cast<std::size_t>(layers), block);
  spec.vocab = size_of(config, "vocab_size");
  spec.positions = size_of(config, "n_positions");
  spec.tied_embeddings = flag_or(config, "tie_word_embeddings", true);
  spec.dropout = block.dropout;
  return spec;
}

DecoderSpec read_gpt_neox(const Value& config) {
  const std::int64_t layers = size_of(config, "num_hidden_layers", kMostLayers);
  const std::int64_t hidden = size_of(config, "hidden_size");
  const std::int64_t heads = size_of(config, "num_attention_heads");
  check_divides(config, "num_attention_heads", heads, hidden, "hidden_size");
  BlockSpec block = gpt_block(hidden, heads, size_of(config, "intermediate_size"));
  block.attention.rotary_dim = rotated(block.attention, share_or(config, "rotary_pct", 0.25));
  block.attention.qkv_bias = block.attention.out_bias = flag_or(config, "attention_bias", true);
  block.attention.dropout = any_dropout(config, {"attention_dropout"}, 0);
  block.dropout = any_dropout(config, {"hidden_dropout"}, 0);
  if (flag_or(config, "use_parallel_residual", true)) block.norms = NormPlacement::parallel;
  DecoderSpec spec;
  spec.blocks.assign(static_cast<std::size_t>(layers), block);
  spec.vocab = size_of(config, "vocab_size");
  spec.tied_embeddings = flag_or(config, "tie_word_embeddings", false);
  spec.dropout = block.dropout;
  return spec;
}

DecoderSpec read_opt(const Value& config) {
  const std::int64_t layers = size_of(config, "num_hidden_layers", kMostLayers);
  const std::int64_t hidden = size_of(config, "hidden_size");
  const std::int64_t heads = size_of(config, "num_attention_heads");
  check_divides(config, "num_attention_heads", heads, hidden, "hidden_size");
  BlockSpec block = gpt_block(hidden, heads, size_of(config, "ffn_dim"));
  const bool bias = flag_or(config, "enable_bias", true);
  block.attention.qkv_bias = block.attention.out_bias = block.mlp.bias = bias;
  if (config["activation_function"].string_or("relu") == "relu") {
    block.mlp.activation = Activation::relu;
  }
  block.dropout = any_dropout(config, {"dropout"}, 0.1);
  block.attention.dropout = any_dropout(config, {"attention_dropout"}, 0);
  DecoderSpec spec;
  const bool norm_before = flag_or(config, "do_layer_norm_before", true);
  if (!norm_before) block.norms = NormPlacement::after;
  spec.final_norm = norm_before && !flag_or(config, "_remove_final_layer_norm", false);
  spec.blocks.assign(static_cast<std::size_t>(layers), block);
  spec.vocab = size_of(config, "vocab_size");
  spec.embedding_width = size_or(config, "word_embed_proj_dim", hidden);
  spec.positions = size_of(config, "max_position_embeddings");
  // The table keeps the offset that padding had in fairseq.
  spec.unused_positions = 2;
  spec.tied_embeddings = flag_or(config, "tie_word_embeddings", true);
  return spec;
}

}  // namespace braid
