#include "braid/frontend/encoder_block.h"

#include "braid/frontend/config_fields.h"

namespace braid {

BlockSpec read_encoder_block(const Value& config, NormPlacement norms, double dropout) {
  BlockSpec block;
  block.hidden = size_of(config, "hidden_size");
  block.rms = false;
  block.norms = norms;
  block.dropout = any_dropout(config, {"hidden_dropout_prob"}, dropout);
  AttentionSpec& attention = block.attention;
  attention.heads = attention.kv_heads = size_of(config, "num_attention_heads");
  check_divides(config, "num_attention_heads", attention.heads, block.hidden, "hidden_size");
  attention.qk_dim = attention.v_dim = block.hidden / attention.heads;
  attention.causal = false;
  attention.qkv_bias = flag_or(config, "qkv_bias", true);
  attention.out_bias = true;
  attention.dropout = any_dropout(config, {"attention_probs_dropout_prob"}, dropout);
  block.mlp.inner = size_of(config, "intermediate_size");
  block.mlp.gated = false;
  block.mlp.bias = true;
  block.mlp.activation =
      config["hidden_act"].string_or("gelu") == "relu" ? Activation::relu : Activation::gelu;
  return block;
}

}  // namespace braid
