#include "braid/frontend/t5.h"

#include "braid/frontend/config_fields.h"
#include "braid/frontend/transformer_block.h"

namespace braid {
namespace {

struct T5Spec {
  std::int64_t encoder_layers = 1, decoder_layers = 1, vocab = 1, buckets = 32;
  bool tied_embeddings = true;
  BlockSpec block;
};

/// "relu", "gated-gelu" and the like.
void read_feed_forward(const Value& config, FeedForwardSpec& mlp) {
  const Value projection = config["feed_forward_proj"];
  const std::string text = projection.string_or("relu");
  constexpr std::string_view gated = "gated-";
  mlp.gated = text.starts_with(gated);
  const std::string_view activation = std::string_view(text).substr(mlp.gated ? gated.size() : 0);
  if (activation == "relu") {
    mlp.activation = Activation::relu;
  } else if (activation == "gelu" || activation == "gelu_new") {
    mlp.activation = Activation::gelu;
  } else if (activation == "silu" || activation == "swish") {
    mlp.activation = Activation::silu;
  } else {
    projection.fail("unknown activation '" + text + "'",
                    "use relu, gelu or silu, with gated- before it or not");
  }
}

T5Spec read_t5(const Value& config) {
  T5Spec spec;
  spec.encoder_layers = size_of(config, "num_layers", kMostLayers);
  spec.decoder_layers = size_or(config, "num_decoder_layers", spec.encoder_layers, kMostLayers);
  spec.vocab = size_of(config, "vocab_size");
  spec.buckets = size_or(config, "relative_attention_num_buckets", 32);
  spec.tied_embeddings = flag_or(config, "tie_word_embeddings", true);
  BlockSpec& block = spec.block;
  block.hidden = size_of(config, "d_model");
  block.dropout = any_dropout(config, {"dropout_rate"}, 0.1);
  AttentionSpec& attention = block.attention;
  attention.heads = attention.kv_heads = size_of(config, "num_heads");
  attention.qk_dim = attention.v_dim = size_of(config, "d_kv");
  check_head_width(config, "d_kv", attention.heads, attention.qk_dim);
  attention.dropout = block.dropout;
  block.mlp.inner = size_of(config, "d_ff");
  read_feed_forward(config, block.mlp);
  return spec;
}

/// Token embedding of the encoder or decoder by the table that both share.
TensorId embed(GraphBuilder& builder, const T5Spec& spec, const std::string& side, TensorId table,
               std::int64_t tokens) {
  const TensorId tokens_in = builder.input(side + ".tokens", {tokens}, Dtype::i64);
  const TensorId x = builder.embedding(side + ".embedding", tokens_in, table, spec.vocab,
                                       spec.block.hidden, tokens);
  if (!spec.block.dropout) return x;
  return builder.dropout(side + ".embedding.dropout", x, tokens, spec.block.hidden);
}

TensorId final_norm(GraphBuilder& builder, const T5Spec& spec, const std::string& side, TensorId x,
                    std::int64_t tokens) {
  x = builder.norm(side + ".final_norm", x, tokens, spec.block.hidden, true);
  if (!spec.block.dropout) return x;
  return builder.dropout(side + ".final_dropout", x, tokens, spec.block.hidden);
}

/// Attention to itself, attention to the encoder's output, feed-forward network.
TensorId decoder_block(GraphBuilder& builder, const BlockSpec& spec, const std::string& prefix,
                       TensorId x, TensorId encoded, std::int64_t tokens) {
  BlockSpec cross = spec;
  cross.attention.relative_bias = -1;
  cross.attention.causal = false;
  for (const char part : {'1', '2', '3'}) {
    TensorId y = builder.norm(prefix + "norm" + part, x, tokens, spec.hidden, true);
    if (part == '1') {
      y = self_attention(builder, spec, prefix + "attention.", y, tokens);
    } else if (part == '2') {
      y = cross_attention(builder, cross, prefix + "cross.", {y, tokens}, {encoded, tokens});
    } else {
      y = feed_forward(builder, spec, prefix + "mlp.", y, tokens, spec.mlp.inner);
    }
    if (spec.dropout) y = builder.dropout(prefix + "dropout" + part, y, tokens, spec.hidden);
    x = builder.residual(prefix + "add" + part, x, y, tokens, spec.hidden);
  }
  return x;
}

}  // namespace

Graph t5_from_config(const Value& config, const std::string& name, const ModelOptions& options) {
  const T5Spec spec = read_t5(config);
  const std::int64_t tokens =
      sample_tokens(options, size_or(config, "n_positions", 512, kMostTokens), false);
  const std::int64_t h = spec.block.hidden;
  const std::int64_t heads = spec.block.attention.heads;
  GraphBuilder builder(name, tokens);

  builder.begin_layer("encoder.embedding");
  const TensorId table = builder.parameter("embedding.weight", {spec.vocab, h});
  TensorId x = embed(builder, spec, "encoder", table, tokens);
  BlockSpec encoder = spec.block;
  encoder.attention.causal = false;
  encoder.attention.relative_bias =
      builder.parameter("encoder.relative_bias.weight", {spec.buckets, heads});
  for (std::int64_t l = 0; l < spec.encoder_layers; ++l) {
    const std::string block = "encoder.block" + std::to_string(l);
    builder.begin_layer(block);
    x = transformer_block(builder, encoder, block + ".", x, tokens);
  }

  builder.begin_layer("decoder.embedding");
  const TensorId encoded = final_norm(builder, spec, "encoder", x, tokens);
  x = embed(builder, spec, "decoder", table, tokens);
  BlockSpec decoder = spec.block;
  decoder.attention.relative_bias =
      builder.parameter("decoder.relative_bias.weight", {spec.buckets, heads});
  for (std::int64_t l = 0; l < spec.decoder_layers; ++l) {
    const std::string block = "decoder.block" + std::to_string(l);
    builder.begin_layer(block);
    x = decoder_block(builder, decoder, block + ".", x, encoded, tokens);
  }

  builder.begin_layer("head");
  x = final_norm(builder, spec, "decoder", x, tokens);
  const TensorId weight =
      spec.tied_embeddings ? table : builder.parameter("lm_head.weight", {h, spec.vocab});
  return builder.finish({builder.language_loss(x, weight, tokens, h, spec.vocab)});
}

}  // namespace braid
