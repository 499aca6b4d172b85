#include <utility>
#include <vector>

#include "braid/frontend/transformer_block.h"

namespace braid {
namespace {

using Keeps = Elementwise::Keeps;

constexpr double kRotaryFlops = 3;

Attention core_of(const AttentionSpec& spec, std::int64_t q_len, std::int64_t kv_len) {
  Attention core;
  core.heads = spec.heads;
  core.kv_heads = spec.kv_heads;
  core.q_len = q_len;
  core.kv_len = kv_len;
  core.qk_dim = spec.qk_dim;
  core.v_dim = spec.v_dim;
  core.window = spec.window;
  core.causal = spec.causal;
  core.dropout = spec.dropout;
  return core;
}

/// Scores, softmax and weighted sum, then the output projection.
TensorId attend(GraphBuilder& builder, const BlockSpec& spec, const std::string& prefix,
                const Attention& core, std::vector<TensorId> inputs) {
  const AttentionSpec& attention = spec.attention;
  if (attention.relative_bias >= 0) inputs.push_back(attention.relative_bias);
  const std::int64_t width = core.heads * core.v_dim;
  const TensorId context =
      builder.add(prefix + "core", core, std::move(inputs), {core.q_len, width}, Split::heads);
  return builder.linear(prefix + "proj", context, {core.q_len, width, spec.hidden},
                        attention.out_bias, Split::row);
}

/// Queries, keys and values in one GEMM.
TensorId plain_attention(GraphBuilder& builder, const BlockSpec& spec, const std::string& prefix,
                         TensorId x, std::int64_t tokens) {
  const AttentionSpec& attention = spec.attention;
  const std::int64_t q_width = attention.heads * attention.qk_dim;
  const std::int64_t k_width = attention.kv_heads * attention.qk_dim;
  const std::int64_t width = q_width + k_width + attention.kv_heads * attention.v_dim;
  TensorId qkv = builder.linear(prefix + "qkv", x, {tokens, spec.hidden, width}, attention.qkv_bias,
                                Split::column);
  if (attention.qk_norm) {
    qkv = builder.add(prefix + "qk_norm",
                      Normalization{tokens * (q_width + k_width), attention.qk_dim, true},
                      {qkv, builder.parameter(prefix + "q_norm.weight", {attention.qk_dim}),
                       builder.parameter(prefix + "k_norm.weight", {attention.qk_dim})},
                      {tokens, width}, Split::features);
  }
  if (attention.rotary_dim > 0) {
    const std::int64_t rotated = (attention.heads + attention.kv_heads) * attention.rotary_dim;
    qkv =
        builder.add(prefix + "rotary", Elementwise{tokens * rotated, kRotaryFlops, Keeps::nothing},
                    {qkv}, {tokens, width}, Split::features);
  }
  return attend(builder, spec, prefix, core_of(attention, tokens, tokens), {qkv});
}

/// Queries and, for training, keys and values are expanded from what the ranks hold; the ranks
/// themselves are computed whole (or for a part of the sequence) on each rank of a tensor-parallel
/// group.
TensorId latent_attention(GraphBuilder& builder, const BlockSpec& spec, const std::string& prefix,
                          TensorId x, std::int64_t tokens) {
  const AttentionSpec& a = spec.attention;
  const std::int64_t q_width = a.heads * a.qk_dim;
  TensorId q = x;
  std::int64_t q_from = spec.hidden;
  if (a.q_rank > 0) {
    q = builder.linear(prefix + "q_down", x, {tokens, spec.hidden, a.q_rank}, a.qkv_bias,
                       Split::sequence);
    q = builder.norm(prefix + "q_norm", q, tokens, a.q_rank, true);
    q_from = a.q_rank;
  }
  q = builder.linear(prefix + "q_up", q, {tokens, q_from, q_width}, false, Split::column);
  q = builder.add(prefix + "q_rotary",
                  Elementwise{tokens * a.heads * a.rotary_dim, kRotaryFlops, Keeps::nothing}, {q},
                  {tokens, q_width}, Split::features);

  const TensorId down =
      builder.linear(prefix + "kv_down", x, {tokens, spec.hidden, a.kv_rank + a.rotary_dim},
                     a.qkv_bias, Split::sequence);
  const TensorId k_shared = builder.add(
      prefix + "k_rotary", Elementwise{tokens * a.rotary_dim, kRotaryFlops, Keeps::nothing}, {down},
      {tokens, a.rotary_dim}, Split::sequence);
  const TensorId latent = builder.norm(prefix + "kv_norm", down, tokens, a.kv_rank, true);
  const std::int64_t own_dim = a.qk_dim - a.rotary_dim;
  const TensorId kv =
      builder.linear(prefix + "kv_up", latent, {tokens, a.kv_rank, a.heads * (own_dim + a.v_dim)},
                     false, Split::column);
  // Each head's key is its own part beside the shared one.
  const TensorId k =
      builder.add(prefix + "keys", DataMovement{}, {kv, k_shared}, {tokens, q_width}, Split::heads);
  return attend(builder, spec, prefix, core_of(a, tokens, tokens), {q, k, kv});
}

}  // namespace

TensorId self_attention(GraphBuilder& builder, const BlockSpec& spec, const std::string& prefix,
                        TensorId x, std::int64_t tokens) {
  return spec.attention.kv_rank > 0 ? latent_attention(builder, spec, prefix, x, tokens)
                                    : plain_attention(builder, spec, prefix, x, tokens);
}

TensorId cross_attention(GraphBuilder& builder, const BlockSpec& spec, const std::string& prefix,
                         const TokenRows& x, const TokenRows& memory) {
  const AttentionSpec& attention = spec.attention;
  const TensorId q = builder.linear(prefix + "q", x.tensor,
                                    {x.tokens, spec.hidden, attention.heads * attention.qk_dim},
                                    attention.qkv_bias, Split::column);
  const TensorId kv = builder.linear(
      prefix + "kv", memory.tensor,
      {memory.tokens, spec.hidden, attention.kv_heads * (attention.qk_dim + attention.v_dim)},
      attention.qkv_bias, Split::column);
  return attend(builder, spec, prefix, core_of(attention, x.tokens, memory.tokens), {q, kv});
}

}  // namespace braid
