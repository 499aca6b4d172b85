#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "braid/frontend/config_fields.h"
#include "braid/frontend/decoder_configs.h"
#include "braid/frontend/decoder_families.h"

namespace braid {
namespace {

/// A block of the GPT kind, but for its inner width: layer norms and biases, a plain feed-forward
/// network.
BlockSpec read_gpt_block(const Value& config, std::string_view hidden_key,
                         std::string_view heads_key) {
  BlockSpec block;
  block.hidden = size_of(config, hidden_key);
  block.rms = false;
  AttentionSpec& attention = block.attention;
  attention.heads = attention.kv_heads = size_of(config, heads_key);
  check_divides(config, heads_key, attention.heads, block.hidden, hidden_key);
  attention.qk_dim = attention.v_dim = block.hidden / attention.heads;
  attention.qkv_bias = attention.out_bias = true;
  block.mlp = {.gated = false, .activation = Activation::gelu, .bias = true};
  return block;
}

DecoderSpec read_gpt2(const Value& config) {
  const std::int64_t layers = size_of(config, "n_layer", kMostLayers);
  BlockSpec block = read_gpt_block(config, "n_embd", "n_head");
  block.mlp.inner = size_or(config, "n_inner", 4 * block.hidden);
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
  BlockSpec block = read_gpt_block(config, "hidden_size", "num_attention_heads");
  block.mlp.inner = size_of(config, "intermediate_size");
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
  BlockSpec block = read_gpt_block(config, "hidden_size", "num_attention_heads");
  block.mlp.inner = size_of(config, "ffn_dim");
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
  spec.embedding_width = size_or(config, "word_embed_proj_dim", block.hidden);
  spec.positions = size_of(config, "max_position_embeddings");
  // The table keeps the offset that padding had in fairseq.
  spec.unused_positions = 2;
  spec.tied_embeddings = flag_or(config, "tie_word_embeddings", true);
  return spec;
}

constexpr std::array kGptTypes = {DecoderType{"gpt2", read_gpt2},
                                  DecoderType{"gpt_neox", read_gpt_neox},
                                  DecoderType{"opt", read_opt}};

}  // namespace

constinit const DecoderFamily kGptFamily = kGptTypes;

}  // namespace braid
