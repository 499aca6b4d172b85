#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "braid/base/document.h"
#include "braid/frontend/decoder.h"

namespace braid {

// What readers of several families' config.json share. All throw Error naming the field.

/// The blocks' windows: by `layer_types` where the config lists them, else global attention in
/// every `period`-th block and the window in the others.
void set_windows(const Value& config, std::int64_t window, std::size_t period,
                 std::vector<BlockSpec>& blocks);

/// `sliding_window`, of all blocks; none where it is left out.
void set_window(const Value& config, std::vector<BlockSpec>& blocks);

/// Part of each head that rotates.
std::int64_t rotated(const AttentionSpec& attention, double share);

/// Routed experts: how many, how many of them a token goes to (`num_experts_per_tok`), their width.
ExpertsSpec read_experts(const Value& config, std::string_view count_key,
                         std::string_view inner_key);

/// Tokens beyond the next one that training predicts, Megatron-LM's `mtp_num_layers`; 0 where it is
/// not said: published configs tell (`num_nextn_predict_layers`) what a model has, and the trainer
/// decides. At most 16.
std::int64_t read_mtp_depth(const Value& config);

/// What sizes are that a config leaves out; 0: those of a config that must not, or follow from
/// others.
struct UsualSizes {
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0, vocab = 0;
};

/// The common ground of Llama and its kin: rotary positions over whole heads, RMS norms, gated
/// feed-forward networks without biases.
DecoderSpec read_llama_like(const Value& config, const UsualSizes& usual = {});

}  // namespace braid
