#include <array>

#include "braid/frontend/config_fields.h"
#include "braid/frontend/decoder_configs.h"
#include "braid/frontend/decoder_families.h"

namespace braid {
namespace {

DecoderSpec read_llama(const Value& config) {
  DecoderSpec spec = read_llama_like(config);
  for (BlockSpec& block : spec.blocks) {
    block.attention.qkv_bias = block.attention.out_bias = flag_or(config, "attention_bias", false);
    block.mlp.bias = flag_or(config, "mlp_bias", false);
  }
  return spec;
}

constexpr std::array kLlamaTypes = {DecoderType{"llama", read_llama}};

}  // namespace

constinit const DecoderFamily kLlamaFamily = kLlamaTypes;

}  // namespace braid
