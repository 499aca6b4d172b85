#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "braid/frontend/onnx_node.h"
#include "braid/frontend/onnx_rules.h"

namespace braid {
namespace {

using Dims = OnnxNodeView::Dims;

/// An operand of [samples, heads, length, width], or of [samples, length, heads · width].
struct Heads {
  std::int64_t samples = 1, heads = 1, length = 1, width = 1;
};

Heads heads_of(const OnnxNodeView& node, std::size_t input, std::int64_t heads) {
  node.need_rank(input, 3, 4);
  const Dims& dims = node.dims(input);
  if (dims.size() == 4) return {dims[0], dims[1], dims[2], dims[3]};
  if (heads < 1 || dims[2] % heads != 0) {
    node.fail(fmt::format("{} heads do not divide input {} of the shape {}", heads, input,
                          text_of(dims)));
  }
  return {dims[0], heads, dims[1], dims[2] / heads};
}

/// Attention of operands 0, 1 and 2 over them and what `past` keeps of earlier keys and values.
/// Without a kernel's name the fused one is taken, as run times do.
std::optional<OperatorKind> attention(OnnxNodeView& node, std::int64_t heads, std::int64_t kv_heads,
                                      std::size_t past, bool causal) {
  const Heads q = heads_of(node, 0, heads);
  const Heads k = heads_of(node, 1, kv_heads);
  const Heads v = heads_of(node, 2, kv_heads);
  if (k.samples != q.samples || v.samples != q.samples || k.heads != v.heads || k.heads < 1 ||
      q.heads % k.heads != 0 || k.length != v.length || q.width != k.width) {
    node.fail(fmt::format("queries {}, keys {} and values {} do not fit", text_of(node.dims(0)),
                          text_of(node.dims(1)), text_of(node.dims(2))));
  }
  std::int64_t length = k.length;
  if (node.has(past)) {
    node.need_rank(past, 4, 4);
    length += node.dims(past)[2];
  }
  const OnnxType type = node.type(0);
  node.set(0, type,
           node.rank(0) == 4 ? Dims{q.samples, q.heads, q.length, v.width}
                             : Dims{q.samples, q.length, node.times(q.heads, v.width)});
  node.set(1, type, {q.samples, k.heads, length, k.width});
  node.set(2, type, {q.samples, k.heads, length, v.width});
  return Attention{.samples = q.samples,
                   .heads = q.heads,
                   .kv_heads = k.heads,
                   .q_len = q.length,
                   .kv_len = length,
                   .qk_dim = q.width,
                   .v_dim = v.width,
                   .causal = causal};
}

std::optional<OperatorKind> standard(OnnxNodeView& node) {
  node.need_inputs(3, 7);
  constexpr std::size_t past_key = 4;
  if (node.wants(3)) node.fail("its output of scores is not supported");
  return attention(node, node.integer("q_num_heads", 0), node.integer("kv_num_heads", 0), past_key,
                   node.integer("is_causal", 0) != 0);
}

std::optional<OperatorKind> multi_head(OnnxNodeView& node) {
  node.need_inputs(3, 10);
  constexpr std::size_t past_key = 6;
  const std::int64_t heads = node.need_integer("num_heads");
  if (node.wants(3)) node.fail("its output of scores is not supported");
  return attention(node, heads, heads, past_key, node.integer("unidirectional", 0) != 0);
}

std::optional<OperatorKind> group_query(OnnxNodeView& node) {
  node.need_inputs(3, 14);
  constexpr std::size_t past_key = 3;
  for (const std::size_t table : {7, 8}) node.not_trained(table);
  auto kind = attention(node, node.need_integer("num_heads"), node.need_integer("kv_num_heads"),
                        past_key, true);
  const std::int64_t window = node.integer("local_window_size", -1);
  if (window > 0) std::get<Attention>(*kind).window = window;
  return kind;
}

/// Each pair of elements turned by a position's angle.
std::optional<OperatorKind> rotary(OnnxNodeView& node) {
  node.need_inputs(3, 4);
  for (const std::size_t table : {1, 2, 3}) node.not_trained(table);
  node.set(0, node.type(0), node.dims(0));
  return Elementwise{node.elements(0), 3, Elementwise::Keeps::nothing};
}

constexpr std::array<OnnxRuleEntry, 4> attention_rules{{
    {"Attention", standard},
    {"GroupQueryAttention", group_query},
    {"MultiHeadAttention", multi_head},
    {"RotaryEmbedding", rotary},
}};

}  // namespace

std::span<const OnnxRuleEntry> onnx_attention_rules() { return attention_rules; }

}  // namespace braid
