#include <array>

#include "braid/frontend/decoder_configs.h"
#include "braid/frontend/decoder_families.h"

namespace braid {
namespace {

DecoderSpec read_mistral(const Value& config) {
  DecoderSpec spec = read_llama_like(config);
  set_window(config, spec.blocks);
  return spec;
}

DecoderSpec read_mixtral(const Value& config) {
  DecoderSpec spec = read_mistral(config);
  const ExpertsSpec experts = read_experts(config, "num_local_experts", "intermediate_size");
  for (BlockSpec& block : spec.blocks) block.experts = experts;
  return spec;
}

constexpr std::array kMistralTypes = {DecoderType{"mistral", read_mistral},
                                      DecoderType{"mixtral", read_mixtral}};

}  // namespace

constinit const DecoderFamily kMistralFamily = kMistralTypes;

}  // namespace braid
