#include <array>

#include "braid/frontend/config_fields.h"
#include "braid/frontend/decoder_configs.h"
#include "braid/frontend/decoder_families.h"

namespace braid {
namespace {

DecoderSpec read_phi3(const Value& config) {
  DecoderSpec spec = read_llama_like(config);
  set_window(config, spec.blocks);
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

constexpr std::array kPhiTypes = {DecoderType{"phi3", read_phi3}};

}  // namespace

constinit const DecoderFamily kPhiFamily = kPhiTypes;

}  // namespace braid
