#include <utility>
#include <vector>

#include "braid/frontend/transformer_block.h"
#include "braid/graph/pointwise_figures.h"

namespace braid {
namespace {

using Keeps = Elementwise::Keeps;

/// The activation and, when gated, the product with the other half, per element written.
Elementwise activation_of(const FeedForwardSpec& spec, std::int64_t elements) {
  const double product = spec.gated ? 1 : 0;
  switch (spec.activation) {
    case Activation::relu:
      return {elements, 1 + product, spec.gated ? Keeps::inputs : Keeps::mask};
    case Activation::relu_squared:
      return {elements, 2 + product, Keeps::inputs};
    case Activation::silu:
      return {elements, kSiluFlops + product, Keeps::inputs};
    case Activation::gelu:
      break;
  }
  return {elements, kGeluFlops + product, Keeps::inputs};
}

const char* activation_name(const FeedForwardSpec& spec) {
  switch (spec.activation) {
    case Activation::relu:
      return spec.gated ? "reglu" : "relu";
    case Activation::relu_squared:
      return spec.gated ? "gated_relu_squared" : "relu_squared";
    case Activation::silu:
      return spec.gated ? "swiglu" : "silu";
    case Activation::gelu:
      break;
  }
  return spec.gated ? "geglu" : "gelu";
}

}  // namespace

TensorId feed_forward(GraphBuilder& builder, const BlockSpec& spec, const std::string& prefix,
                      TensorId x, std::int64_t tokens, std::int64_t inner) {
  const FeedForwardSpec& mlp = spec.mlp;
  const std::int64_t up_width = mlp.gated ? 2 * inner : inner;
  const TensorId up =
      builder.linear(prefix + "up", x, {tokens, spec.hidden, up_width}, mlp.bias, Split::column);
  const TensorId active =
      builder.add(prefix + activation_name(mlp), activation_of(mlp, tokens * inner), {up},
                  {tokens, inner}, Split::features);
  return builder.linear(prefix + "down", active, {tokens, inner, spec.hidden}, mlp.bias,
                        Split::row);
}

TensorId experts(GraphBuilder& builder, const BlockSpec& spec, const std::string& prefix,
                 TensorId x, std::int64_t tokens) {
  const ExpertsSpec& moe = spec.experts;
  const TensorId scores =
      builder.add(prefix + "router", MoeRouter{tokens, spec.hidden, moe.count, moe.top_k},
                  {x, builder.parameter(prefix + "router.weight", {spec.hidden, moe.count})},
                  {tokens, moe.count}, Split::sequence);
  const std::int64_t matrices = spec.mlp.gated ? 3 : 2;
  const std::int64_t width = moe.latent > 0 ? moe.latent : spec.hidden;
  TensorId in = x;
  if (moe.latent > 0) {
    in = builder.linear(prefix + "latent_down", x, {tokens, spec.hidden, width}, false,
                        Split::sequence);
  }
  const TensorId weights =
      builder.parameter(prefix + "experts.weight", {moe.count, matrices, width, moe.inner});
  std::vector<TensorId> inputs = {in, scores, weights};
  if (moe.biased) {
    inputs.push_back(builder.parameter(prefix + "experts.bias",
                                       {moe.count, (matrices - 1) * moe.inner + width}));
  }
  TensorId out = builder.add(
      prefix + "experts",
      MoeExperts{tokens, width, moe.inner, moe.count, moe.top_k, matrices, moe.biased, moe.clamped},
      std::move(inputs), {tokens, width}, Split::expert);
  if (moe.latent > 0) {
    out = builder.linear(prefix + "latent_up", out, {tokens, width, spec.hidden}, false,
                         Split::sequence);
  }
  if (moe.shared_inner == 0) return out;
  TensorId shared = feed_forward(builder, spec, prefix + "shared.", x, tokens, moe.shared_inner);
  if (moe.shared_gate) {
    const TensorId gate =
        builder.linear(prefix + "shared.gate", x, {tokens, spec.hidden, 1}, false, Split::sequence);
    shared =
        builder.add(prefix + "shared.scale", Elementwise{tokens * spec.hidden, 1, Keeps::inputs},
                    {shared, gate}, {tokens, spec.hidden}, Split::sequence);
  }
  return builder.residual(prefix + "add_shared", out, shared, tokens, spec.hidden);
}

}  // namespace braid
