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

}  // namespace

std::int64_t rotated(const AttentionSpec& attention, double share) {
  return static_cast<std::int64_t>(static_cast<double>(attention.qk_dim) * share);
}

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

void set_window(const Value& config, std::vector<BlockSpec>& blocks) {
  const std::int64_t window = size_or(config, "sliding_window", 0, kMostTokens);
  for (BlockSpec& block : blocks) block.attention.window = window;
}

ExpertsSpec read_experts(const Value& config, std::string_view count_key,
                         std::string_view inner_key) {
  ExpertsSpec experts;
  experts.count = size_of(config, count_key);
  experts.top_k = config["num_experts_per_tok"].as_int_in(1, experts.count);
  experts.inner = size_of(config, inner_key);
  return experts;
}

std::int64_t read_mtp_depth(const Value& config) {
  return count_or(config, "mtp_num_layers", 0, kMostMtpLayers);
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

}  // namespace braid
