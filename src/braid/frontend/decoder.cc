#include "braid/frontend/decoder.h"

#include <cassert>
#include <string>

#include "braid/frontend/graph_builder.h"

namespace braid {
namespace {

/// One prediction behind another; returns x and what each of them wrote, one above the other
/// [tokens · (1 + count) × hidden].
TensorId mtp_modules(GraphBuilder& builder, const DecoderSpec& spec, TensorId tokens,
                     TensorId table, TensorId x, std::int64_t seq_len) {
  const MtpSpec& mtp = spec.mtp;
  const std::int64_t hidden = spec.blocks.front().hidden;
  const bool rms = spec.blocks.front().rms;
  TensorId stacked = x;
  for (std::int64_t depth = 0; depth < mtp.count; ++depth) {
    const std::string prefix = "mtp" + std::to_string(depth) + ".";
    if (mtp.shared && depth > 0) builder.share_parameters(prefix, "mtp0.");
    const TensorId token =
        builder.embedding(prefix + "embedding", tokens, table, spec.vocab, hidden, seq_len);
    const TensorId both =
        builder.add(prefix + "join", DataMovement{},
                    {builder.norm(prefix + "token_norm", token, seq_len, hidden, rms),
                     builder.norm(prefix + "hidden_norm", x, seq_len, hidden, rms)},
                    {seq_len, 2 * hidden}, Split::sequence);
    x = builder.linear(prefix + "project", both, {seq_len, 2 * hidden, hidden}, false,
                       Split::sequence);
    for (std::size_t b = 0; b < mtp.blocks.size(); ++b) {
      x = transformer_block(builder, mtp.blocks[b], prefix + "block" + std::to_string(b) + ".", x,
                            seq_len);
    }
    stacked = builder.add(prefix + "stack", DataMovement{true}, {stacked, x},
                          {(depth + 2) * seq_len, hidden}, Split::sequence);
  }
  builder.share_parameters("", "");
  return stacked;
}

}  // namespace

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
    x = builder.linear("project_in", x, {seq_len, width, hidden}, false, Split::sequence);
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
  std::int64_t predicted = seq_len;
  if (spec.mtp.count > 0) {
    assert(width == hidden);
    builder.begin_layer("mtp");
    x = mtp_modules(builder, spec, tokens, table, x, seq_len);
    predicted *= 1 + spec.mtp.count;
  }
  builder.begin_layer("head");
  if (spec.final_norm) x = builder.norm("final_norm", x, predicted, hidden, rms);
  if (width != hidden) {
    x = builder.linear("project_out", x, {predicted, hidden, width}, false, Split::sequence);
  }
  const TensorId weight =
      spec.tied_embeddings ? table : builder.parameter("lm_head.weight", {width, spec.vocab});
  return builder.finish({builder.language_loss(x, weight, predicted, width, spec.vocab)});
}

}  // namespace braid
