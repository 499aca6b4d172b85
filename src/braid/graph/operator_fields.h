#pragma once

#include <string_view>
#include <type_traits>

#include "braid/graph/graph.h"

namespace braid {

/// The name of an operator kind in files and messages: `matmul`, `moe_experts` …
template <typename Kind>
constexpr std::string_view kind_name() {
  if constexpr (std::is_same_v<Kind, MatMul>) return "matmul";
  if constexpr (std::is_same_v<Kind, Attention>) return "attention";
  if constexpr (std::is_same_v<Kind, Convolution>) return "convolution";
  if constexpr (std::is_same_v<Kind, Recurrent>) return "recurrent";
  if constexpr (std::is_same_v<Kind, Normalization>) return "normalization";
  if constexpr (std::is_same_v<Kind, Softmax>) return "softmax";
  if constexpr (std::is_same_v<Kind, Elementwise>) return "elementwise";
  if constexpr (std::is_same_v<Kind, Embedding>) return "embedding";
  if constexpr (std::is_same_v<Kind, MoeRouter>) return "moe_router";
  if constexpr (std::is_same_v<Kind, MoeExperts>) return "moe_experts";
  if constexpr (std::is_same_v<Kind, Reduction>) return "reduction";
  if constexpr (std::is_same_v<Kind, DataMovement>) return "data_movement";
  if constexpr (std::is_same_v<Kind, Loss>) return "loss";
  if constexpr (std::is_same_v<Kind, OptimizerStep>) return "optimizer_step";
}

inline std::string_view kind_name(const OperatorKind& kind) {
  return std::visit([]<typename Kind>(const Kind&) { return kind_name<Kind>(); }, kind);
}

/// Calls `visit(name, member)` for each member of an operator kind, in declaration order. Members
/// are `std::int64_t`, `bool`, `double` or `Elementwise::Keeps`. The one list of members that
/// checking, hashing, reading and writing share.
template <typename Kind, typename Visit>
void visit_fields(Kind& kind, Visit&& visit) {
  using Plain = std::remove_const_t<Kind>;
  if constexpr (std::is_same_v<Plain, MatMul>) {
    visit("batch", kind.batch);
    visit("m", kind.m);
    visit("n", kind.n);
    visit("k", kind.k);
    visit("weight", kind.weight);
    visit("bias", kind.bias);
  } else if constexpr (std::is_same_v<Plain, Attention>) {
    visit("samples", kind.samples);
    visit("heads", kind.heads);
    visit("kv_heads", kind.kv_heads);
    visit("q_len", kind.q_len);
    visit("kv_len", kind.kv_len);
    visit("qk_dim", kind.qk_dim);
    visit("v_dim", kind.v_dim);
    visit("window", kind.window);
    visit("causal", kind.causal);
    visit("flash", kind.flash);
    visit("dropout", kind.dropout);
  } else if constexpr (std::is_same_v<Plain, Convolution>) {
    visit("samples", kind.samples);
    visit("in_channels", kind.in_channels);
    visit("out_channels", kind.out_channels);
    visit("groups", kind.groups);
    visit("out_positions", kind.out_positions);
    visit("in_positions", kind.in_positions);
    visit("kernel_positions", kind.kernel_positions);
    visit("transposed", kind.transposed);
    visit("bias", kind.bias);
  } else if constexpr (std::is_same_v<Plain, Recurrent>) {
    visit("steps", kind.steps);
    visit("rows", kind.rows);
    visit("n", kind.n);
    visit("k", kind.k);
  } else if constexpr (std::is_same_v<Plain, Normalization>) {
    visit("elements", kind.elements);
    visit("width", kind.width);
    visit("rms", kind.rms);
  } else if constexpr (std::is_same_v<Plain, Softmax>) {
    visit("elements", kind.elements);
    visit("width", kind.width);
  } else if constexpr (std::is_same_v<Plain, Elementwise>) {
    visit("elements", kind.elements);
    visit("flops_per_element", kind.flops_per_element);
    visit("keeps", kind.keeps);
  } else if constexpr (std::is_same_v<Plain, Embedding>) {
    visit("rows", kind.rows);
    visit("width", kind.width);
    visit("lookups", kind.lookups);
    visit("pooling", kind.pooling);
  } else if constexpr (std::is_same_v<Plain, MoeRouter>) {
    visit("tokens", kind.tokens);
    visit("hidden", kind.hidden);
    visit("experts", kind.experts);
    visit("top_k", kind.top_k);
  } else if constexpr (std::is_same_v<Plain, MoeExperts>) {
    visit("tokens", kind.tokens);
    visit("hidden", kind.hidden);
    visit("inner", kind.inner);
    visit("experts", kind.experts);
    visit("top_k", kind.top_k);
    visit("matrices", kind.matrices);
    visit("biased", kind.biased);
    visit("clamped", kind.clamped);
    visit("padded", kind.padded);
  } else if constexpr (std::is_same_v<Plain, Reduction>) {
    visit("elements", kind.elements);
  } else if constexpr (std::is_same_v<Plain, DataMovement>) {
    visit("view", kind.view);
  } else if constexpr (std::is_same_v<Plain, Loss>) {
    visit("rows", kind.rows);
    visit("width", kind.width);
  } else {
    static_assert(std::is_same_v<Plain, OptimizerStep>);
    visit("parameters", kind.parameters);
  }
}

}  // namespace braid
