#include "braid/frontend/transformer_block.h"

#include <string_view>

#include <fmt/format.h>

namespace braid {
namespace {

/// Feed-forward network or experts, whichever the block has.
TensorId second_half(GraphBuilder& builder, const BlockSpec& spec, const std::string& prefix,
                     TensorId x, std::int64_t tokens) {
  return spec.experts.count > 0
             ? experts(builder, spec, prefix + "moe.", x, tokens)
             : feed_forward(builder, spec, prefix + "mlp.", x, tokens, spec.mlp.inner);
}

/// Attention or state space, whichever the block has.
TensorId first_half(GraphBuilder& builder, const BlockSpec& spec, const std::string& prefix,
                    TensorId x, std::int64_t tokens) {
  return spec.state_space.heads > 0
             ? state_space(builder, spec, prefix + "mamba.", x, tokens)
             : self_attention(builder, spec, prefix + "attention.", x, tokens);
}

TensorId parallel_block(GraphBuilder& builder, const BlockSpec& spec, const std::string& prefix,
                        TensorId x, std::int64_t tokens) {
  const std::int64_t h = spec.hidden;
  TensorId a = builder.norm(prefix + "norm1", x, tokens, h, spec.rms);
  a = self_attention(builder, spec, prefix + "attention.", a, tokens);
  if (spec.dropout) a = builder.dropout(prefix + "dropout1", a, tokens, h);
  TensorId b = builder.norm(prefix + "norm2", x, tokens, h, spec.rms);
  b = second_half(builder, spec, prefix, b, tokens);
  if (spec.dropout) b = builder.dropout(prefix + "dropout2", b, tokens, h);
  const TensorId halves = builder.residual(prefix + "add1", a, b, tokens, h);
  return builder.residual(prefix + "add2", x, halves, tokens, h);
}

}  // namespace

TensorId transformer_block(GraphBuilder& builder, const BlockSpec& spec, const std::string& prefix,
                           TensorId x, std::int64_t tokens) {
  if (spec.norms == NormPlacement::parallel) {
    return parallel_block(builder, spec, prefix, x, tokens);
  }
  const std::int64_t h = spec.hidden;
  const bool reads_norm = spec.norms != NormPlacement::after;
  for (const int half : {1, 2}) {
    if (spec.halves == (half == 1 ? Halves::feeding : Halves::mixing)) continue;
    const auto named = [&](std::string_view what) {
      return fmt::format("{}{}{}", prefix, what, half);
    };
    TensorId y = reads_norm ? builder.norm(named("norm"), x, tokens, h, spec.rms) : x;
    y = half == 1 ? first_half(builder, spec, prefix, y, tokens)
                  : second_half(builder, spec, prefix, y, tokens);
    if (spec.norms == NormPlacement::around) {
      y = builder.norm(named("post_norm"), y, tokens, h, spec.rms);
    }
    if (spec.dropout) y = builder.dropout(named("dropout"), y, tokens, h);
    x = builder.residual(named("add"), x, y, tokens, h);
    if (!reads_norm) x = builder.norm(named("norm"), x, tokens, h, spec.rms);
  }
  return x;
}

}  // namespace braid
