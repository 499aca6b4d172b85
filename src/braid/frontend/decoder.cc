#include "braid/frontend/decoder.h"

#include "braid/frontend/graph_builder.h"

namespace braid {
namespace {

using Keeps = Elementwise::Keeps;

TensorId dropout(GraphBuilder& builder, const std::string& name, TensorId x, std::int64_t rows,
                 std::int64_t width) {
  return builder.add(name, Elementwise{rows * width, 2, Keeps::mask}, {x}, {rows, width},
                     Split::sequence);
}

TensorId attention_block(GraphBuilder& builder, const DecoderSpec& spec, const std::string& prefix,
                         TensorId x, std::int64_t tokens) {
  const std::int64_t q_width = spec.heads * spec.head_dim;
  const std::int64_t kv_width = spec.kv_heads * spec.head_dim;
  TensorId qkv = builder.linear(prefix + "qkv", x, tokens, spec.hidden, q_width + 2 * kv_width,
                                spec.qkv_bias, Split::column);
  if (spec.qk_norm) {
    qkv = builder.add(prefix + "qk_norm",
                      Normalization{tokens * (q_width + kv_width), spec.head_dim, true},
                      {qkv, builder.parameter(prefix + "q_norm.weight", {spec.head_dim}),
                       builder.parameter(prefix + "k_norm.weight", {spec.head_dim})},
                      {tokens, q_width + 2 * kv_width}, Split::features);
  }
  if (spec.positions == 0) {
    qkv = builder.add(prefix + "rotary",
                      Elementwise{tokens * (q_width + kv_width), 3, Keeps::nothing}, {qkv},
                      {tokens, q_width + 2 * kv_width}, Split::features);
  }
  Attention attention;
  attention.heads = spec.heads;
  attention.kv_heads = spec.kv_heads;
  attention.q_len = attention.kv_len = tokens;
  attention.qk_dim = attention.v_dim = spec.head_dim;
  attention.window = spec.window;
  attention.causal = true;
  attention.dropout = spec.dropout;
  const TensorId context =
      builder.add(prefix + "core", attention, {qkv}, {tokens, q_width}, Split::heads);
  return builder.linear(prefix + "proj", context, tokens, q_width, spec.hidden, spec.out_bias,
                        Split::row);
}

TensorId feed_forward(GraphBuilder& builder, const DecoderSpec& spec, const std::string& prefix,
                      TensorId x, std::int64_t tokens, std::int64_t inner) {
  const std::int64_t up_width = spec.gated ? 2 * inner : inner;
  const TensorId up =
      builder.linear(prefix + "up", x, tokens, spec.hidden, up_width, spec.mlp_bias, Split::column);
  const TensorId active =
      builder.add(prefix + (spec.gated ? "swiglu" : "gelu"),
                  Elementwise{tokens * inner, spec.gated ? 6.0 : 10.0, Keeps::inputs}, {up},
                  {tokens, inner}, Split::features);
  return builder.linear(prefix + "down", active, tokens, inner, spec.hidden, spec.mlp_bias,
                        Split::row);
}

TensorId experts(GraphBuilder& builder, const DecoderSpec& spec, const std::string& prefix,
                 TensorId x, std::int64_t tokens) {
  const TensorId scores =
      builder.add(prefix + "router", MoeRouter{tokens, spec.hidden, spec.experts, spec.top_k},
                  {x, builder.parameter(prefix + "router.weight", {spec.hidden, spec.experts})},
                  {tokens, spec.experts}, Split::sequence);
  const std::int64_t matrices = spec.gated ? 3 : 2;
  const TensorId weights = builder.parameter(
      prefix + "experts.weight", {spec.experts, matrices, spec.hidden, spec.expert_inner});
  TensorId out = builder.add(
      prefix + "experts",
      MoeExperts{tokens, spec.hidden, spec.expert_inner, spec.experts, spec.top_k, matrices},
      {x, scores, weights}, {tokens, spec.hidden}, Split::expert);
  if (spec.shared_inner > 0) {
    const TensorId shared =
        feed_forward(builder, spec, prefix + "shared.", x, tokens, spec.shared_inner);
    out = builder.residual(prefix + "add_shared", out, shared, tokens, spec.hidden);
  }
  return out;
}

TensorId block(GraphBuilder& builder, const DecoderSpec& spec, const std::string& prefix,
               TensorId x, std::int64_t tokens) {
  const std::int64_t h = spec.hidden;
  TensorId y = builder.norm(prefix + "norm1", x, tokens, h, spec.rms);
  y = attention_block(builder, spec, prefix + "attention.", y, tokens);
  if (spec.dropout) y = dropout(builder, prefix + "dropout1", y, tokens, h);
  x = builder.residual(prefix + "add1", x, y, tokens, h);
  y = builder.norm(prefix + "norm2", x, tokens, h, spec.rms);
  y = spec.experts > 0 ? experts(builder, spec, prefix + "moe.", y, tokens)
                       : feed_forward(builder, spec, prefix + "mlp.", y, tokens, spec.inner);
  if (spec.dropout) y = dropout(builder, prefix + "dropout2", y, tokens, h);
  return builder.residual(prefix + "add2", x, y, tokens, h);
}

}  // namespace

Graph build_decoder(const DecoderSpec& spec, std::int64_t seq_len) {
  GraphBuilder builder(spec.name, seq_len);
  builder.begin_layer("embedding");
  const TensorId tokens_in = builder.input("tokens", {seq_len}, Dtype::i64);
  const TensorId table = builder.parameter("embedding.weight", {spec.vocab, spec.hidden});
  TensorId x = builder.add("embedding", Embedding{spec.vocab, spec.hidden, seq_len, 1},
                           {tokens_in, table}, {seq_len, spec.hidden}, Split::vocab);
  if (spec.positions > 0) {
    const TensorId positions = builder.parameter("positions.weight", {spec.positions, spec.hidden});
    x = builder.add("add_positions", Elementwise{seq_len * spec.hidden, 1, Keeps::nothing},
                    {x, positions}, {seq_len, spec.hidden}, Split::sequence);
  }
  if (spec.dropout) x = dropout(builder, "embedding.dropout", x, seq_len, spec.hidden);
  for (std::int64_t l = 0; l < spec.layers; ++l) {
    const std::string name = "block" + std::to_string(l);
    builder.begin_layer(name);
    x = block(builder, spec, name + ".", x, seq_len);
  }
  builder.begin_layer("head");
  x = builder.norm("final_norm", x, seq_len, spec.hidden, spec.rms);
  const TensorId weight =
      spec.tied_embeddings ? table : builder.parameter("lm_head.weight", {spec.hidden, spec.vocab});
  const TensorId logits =
      builder.add("lm_head", MatMul{1, seq_len, spec.vocab, spec.hidden, true, false}, {x, weight},
                  {seq_len, spec.vocab}, Split::vocab);
  const TensorId loss = builder.add("loss", Loss{seq_len, spec.vocab}, {logits}, {1}, Split::vocab);
  return builder.finish({loss});
}

}  // namespace braid
