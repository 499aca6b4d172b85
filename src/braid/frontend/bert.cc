#include "braid/frontend/bert.h"

#include "braid/frontend/config_fields.h"
#include "braid/frontend/encoder_block.h"
#include "braid/frontend/transformer_block.h"
#include "braid/graph/pointwise_figures.h"

namespace braid {
namespace {

using Keeps = Elementwise::Keeps;

struct BertSpec {
  std::int64_t layers = 1, vocab = 1, positions = 1, token_types = 2;
  BlockSpec block;
};

BertSpec read_bert(const Value& config) {
  BertSpec spec;
  spec.layers = size_of(config, "num_hidden_layers", kMostLayers);
  spec.vocab = size_of(config, "vocab_size");
  spec.positions = size_of(config, "max_position_embeddings");
  spec.token_types = size_or(config, "type_vocab_size", 2);
  spec.block = read_encoder_block(config, NormPlacement::after, 0.1);
  return spec;
}

/// Loss of telling from the first token whether the second sentence follows the first.
TensorId next_sentence_loss(GraphBuilder& builder, TensorId x, std::int64_t hidden) {
  const TensorId first =
      builder.add("first_token", DataMovement{}, {x}, {1, hidden}, Split::replicated);
  const TensorId pooled =
      builder.linear("pooler", first, {1, hidden, hidden}, true, Split::replicated);
  const TensorId active = builder.add("pooler.tanh", Elementwise{hidden, kTanhFlops, Keeps::inputs},
                                      {pooled}, {1, hidden}, Split::replicated);
  const TensorId logits =
      builder.linear("next_sentence", active, {1, hidden, 2}, true, Split::replicated);
  return builder.add("next_sentence.loss", Loss{1, 2}, {logits}, {1}, Split::replicated);
}

}  // namespace

Graph bert_from_config(const Value& config, const std::string& name, const ModelOptions& options) {
  const BertSpec spec = read_bert(config);
  const std::int64_t tokens = sample_tokens(options, spec.positions, true);
  const std::int64_t h = spec.block.hidden;
  GraphBuilder builder(name, tokens);
  builder.begin_layer("embedding");
  const TensorId tokens_in = builder.input("tokens", {tokens}, Dtype::i64);
  const TensorId types_in = builder.input("token_types", {tokens}, Dtype::i64);
  const TensorId table = builder.parameter("embedding.weight", {spec.vocab, h});
  TensorId x = builder.embedding("embedding", tokens_in, table, spec.vocab, h, tokens);
  x = builder.add_positions("add_positions", x, spec.positions, tokens, h);
  const TensorId types = builder.parameter("token_types.weight", {spec.token_types, h});
  const TensorId type = builder.add("token_types", Embedding{spec.token_types, h, tokens, 1},
                                    {types_in, types}, {tokens, h}, Split::sequence);
  x = builder.residual("add_token_types", x, type, tokens, h);
  x = builder.norm("embedding.norm", x, tokens, h, false);
  if (spec.block.dropout) x = builder.dropout("embedding.dropout", x, tokens, h);
  for (std::int64_t l = 0; l < spec.layers; ++l) {
    const std::string block = "block" + std::to_string(l);
    builder.begin_layer(block);
    x = transformer_block(builder, spec.block, block + ".", x, tokens);
  }
  builder.begin_layer("head");
  const TensorId sentence_loss = next_sentence_loss(builder, x, h);
  TensorId y = builder.linear("transform", x, {tokens, h, h}, true, Split::sequence);
  y = builder.add("transform.activation", Elementwise{tokens * h, kGeluFlops, Keeps::inputs}, {y},
                  {tokens, h}, Split::sequence);
  y = builder.norm("transform.norm", y, tokens, h, false);
  const TensorId bias = builder.parameter("lm_head.bias", {spec.vocab});
  const TensorId loss = builder.language_loss(y, table, tokens, h, spec.vocab, bias);
  return builder.finish({loss, sentence_loss});
}

}  // namespace braid
