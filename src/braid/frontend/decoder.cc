#include "braid/frontend/decoder.h"

#include "braid/frontend/graph_builder.h"

namespace braid {

Graph build_decoder(const DecoderSpec& spec, std::int64_t seq_len) {
  const std::int64_t hidden = spec.blocks.front().hidden;
  const bool rms = spec.blocks.front().rms;
  const std::int64_t width = spec.embedding_width > 0 ? spec.embedding_width : hidden;
  GraphBuilder builder(spec.name, seq_len);
  builder.begin_layer("embedding");
  const TensorId tokens = builder.input("tokens", {seq_len}, Dtype::i64);
  const TensorId table = builder.parameter("embedding.weight", {spec.vocab, width});
  TensorId x = builder.embedding("embedding", tokens, table, spec.vocab, width, seq_len);
  if (width != hidden) {
    x = builder.linear("project_in", x, seq_len, width, hidden, false, Split::sequence);
  }
  if (spec.positions > 0) {
    x = builder.add_positions("add_positions", x, spec.positions + spec.unused_positions, seq_len,
                              hidden);
  }
  if (spec.dropout) x = builder.dropout("embedding.dropout", x, seq_len, hidden);
  for (std::size_t l = 0; l < spec.blocks.size(); ++l) {
    const std::string name = "block" + std::to_string(l);
    builder.begin_layer(name);
    x = transformer_block(builder, spec.blocks[l], name + ".", x, seq_len);
  }
  builder.begin_layer("head");
  if (spec.final_norm) x = builder.norm("final_norm", x, seq_len, hidden, rms);
  if (width != hidden) {
    x = builder.linear("project_out", x, seq_len, hidden, width, false, Split::sequence);
  }
  const TensorId weight =
      spec.tied_embeddings ? table : builder.parameter("lm_head.weight", {width, spec.vocab});
  return builder.finish({builder.language_loss(x, weight, seq_len, width, spec.vocab)});
}

}  // namespace braid
