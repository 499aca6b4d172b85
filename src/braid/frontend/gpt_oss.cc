#include <array>

#include "braid/frontend/config_fields.h"
#include "braid/frontend/decoder_configs.h"
#include "braid/frontend/decoder_families.h"

namespace braid {
namespace {

DecoderSpec read_gpt_oss(const Value& config) {
  DecoderSpec spec = read_llama_like(config);
  ExpertsSpec experts = read_experts(config, "num_local_experts", "intermediate_size");
  // Both of every published one (gpt_oss in Hugging Face's transformers, GptOssExperts).
  experts.biased = experts.clamped = true;
  const bool bias = flag_or(config, "attention_bias", true);
  for (BlockSpec& block : spec.blocks) {
    block.experts = experts;
    block.attention.qkv_bias = block.attention.out_bias = bias;
  }
  set_windows(config, size_or(config, "sliding_window", 128, kMostTokens), 2, spec.blocks);
  spec.attention_sinks = true;
  return spec;
}

constexpr std::array kGptOssTypes = {DecoderType{"gpt_oss", read_gpt_oss}};

}  // namespace

constinit const DecoderFamily kGptOssFamily = kGptOssTypes;

}  // namespace braid
