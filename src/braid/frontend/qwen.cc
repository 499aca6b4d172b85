#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "braid/frontend/config_fields.h"
#include "braid/frontend/decoder_configs.h"
#include "braid/frontend/decoder_families.h"

namespace braid {
namespace {

/// With `use_sliding_window`, the window from block `max_window_layers` on, or by `layer_types`.
void set_qwen_windows(const Value& config, std::vector<BlockSpec>& blocks) {
  if (!flag_or(config, "use_sliding_window", false)) return;
  const std::int64_t window = size_or(config, "sliding_window", 4096, kMostTokens);
  if (has(config, "layer_types")) return set_windows(config, window, 1, blocks);
  const std::int64_t first = count_or(config, "max_window_layers", 28, kMostLayers);
  for (auto l = static_cast<std::size_t>(first); l < blocks.size(); ++l) {
    blocks[l].attention.window = window;
  }
}

/// Experts in every `decoder_sparse_step`-th block but those of `mlp_only_layers`.
void place_qwen_experts(const Value& config, const ExpertsSpec& experts,
                        std::vector<BlockSpec>& blocks) {
  const auto step =
      static_cast<std::size_t>(size_or(config, "decoder_sparse_step", 1, kMostLayers));
  for (std::size_t l = step - 1; l < blocks.size(); l += step) blocks[l].experts = experts;
  if (!has(config, "mlp_only_layers")) return;
  for (const Value& layer : config["mlp_only_layers"].elements()) {
    const std::int64_t index = layer.as_int_in(0, static_cast<std::int64_t>(blocks.size()) - 1);
    blocks[static_cast<std::size_t>(index)].experts = {};
  }
}

/// Of MoE models: the scores of the chosen experts are those of a softmax over all.
constexpr RouterSpec kQwenRouter = {.all_experts = true};

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

DecoderSpec read_qwen2_moe(const Value& config) {
  DecoderSpec spec = read_llama_like(config);
  const bool bias = flag_or(config, "qkv_bias", true);
  for (BlockSpec& block : spec.blocks) block.attention.qkv_bias = bias;
  ExpertsSpec experts = read_experts(config, "num_experts", "moe_intermediate_size");
  experts.shared_inner = size_of(config, "shared_expert_intermediate_size");
  experts.shared_gate = true;
  place_qwen_experts(config, experts, spec.blocks);
  set_qwen_windows(config, spec.blocks);
  spec.router = kQwenRouter;
  return spec;
}

DecoderSpec read_qwen3_moe(const Value& config) {
  DecoderSpec spec = read_llama_like(config);
  const bool bias = flag_or(config, "attention_bias", false);
  for (BlockSpec& block : spec.blocks) {
    block.attention.qk_norm = true;
    block.attention.qkv_bias = block.attention.out_bias = bias;
  }
  place_qwen_experts(config, read_experts(config, "num_experts", "moe_intermediate_size"),
                     spec.blocks);
  set_qwen_windows(config, spec.blocks);
  spec.router = kQwenRouter;
  return spec;
}

constexpr std::array kQwenTypes = {
    DecoderType{"qwen2", read_qwen2}, DecoderType{"qwen2_moe", read_qwen2_moe},
    DecoderType{"qwen3", read_qwen3}, DecoderType{"qwen3_moe", read_qwen3_moe}};

}  // namespace

constinit const DecoderFamily kQwenFamily = kQwenTypes;

}  // namespace braid
