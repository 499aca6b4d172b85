#pragma once

#include <cstdint>
#include <vector>

#include "braid/base/document.h"
#include "braid/frontend/decoder.h"

namespace braid {

// Readers of the config.json of decoder-only models, one for each `model_type`; the name is left
// empty. All throw Error naming the field.

DecoderSpec read_gemma(const Value& config);
DecoderSpec read_gemma2(const Value& config);
DecoderSpec read_gemma3(const Value& config);
DecoderSpec read_gpt2(const Value& config);
DecoderSpec read_gpt_neox(const Value& config);
DecoderSpec read_llama(const Value& config);
DecoderSpec read_mistral(const Value& config);
DecoderSpec read_opt(const Value& config);
DecoderSpec read_phi3(const Value& config);
DecoderSpec read_qwen2(const Value& config);
DecoderSpec read_qwen3(const Value& config);

// Hybrids of state-space layers, attention and feed-forward networks or experts.
DecoderSpec read_nemotron_h(const Value& config);

// MoE models.
DecoderSpec read_deepseek(const Value& config);  ///< V2 and V3.
DecoderSpec read_gpt_oss(const Value& config);
DecoderSpec read_mixtral(const Value& config);
DecoderSpec read_qwen2_moe(const Value& config);
DecoderSpec read_qwen3_moe(const Value& config);

/// The blocks' windows: by `layer_types` where the config lists them, else global attention in
/// every `period`-th block and the window in the others.
void set_windows(const Value& config, std::int64_t window, std::size_t period,
                 std::vector<BlockSpec>& blocks);

/// Qwen's: with `use_sliding_window`, the window from block `max_window_layers` on, or by
/// `layer_types`.
void set_qwen_windows(const Value& config, std::vector<BlockSpec>& blocks);

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
