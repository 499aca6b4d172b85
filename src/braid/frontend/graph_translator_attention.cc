#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/index.h"
#include "braid/frontend/graph_translator.h"
#include "braid/program/numbers.h"

namespace braid {

// Heads that share keys are stacked: with g of them a product has g · q_len rows for each head of
// the keys, so that keys and values need not be copied.

namespace {

/// Distances from which on T5 tells no more apart.
constexpr std::int64_t kFarthest = 128;

/// The bucket of a key that is so many places before its query (negative: behind): one for each
/// small distance, and for larger ones buckets that grow with it (Raffel et al. 2020, §2.1). Where
/// queries see what is behind them too, half of the buckets are for that.
std::int64_t bucket_of(std::int64_t distance, std::int64_t buckets, bool causal) {
  std::int64_t first = 0;
  if (!causal) {
    buckets /= 2;
    if (distance < 0) first = buckets;
    distance = std::abs(distance);
  }
  distance = std::max<std::int64_t>(distance, 0);
  const std::int64_t exact = buckets / 2;
  if (distance < exact) return first + distance;
  const double part = std::log(static_cast<double>(distance) / static_cast<double>(exact)) /
                      std::log(static_cast<double>(kFarthest) / static_cast<double>(exact));
  const auto large = exact + static_cast<std::int64_t>(part * static_cast<double>(buckets - exact));
  return first + std::min(large, buckets - 1);
}

/// For each query and each of its keys.
std::vector<std::int64_t> bucket_rows(const Attention& kind, std::int64_t buckets) {
  std::vector<std::int64_t> of_distance;  // From that of the last key to the first query on.
  of_distance.reserve(at(kind.q_len + kind.kv_len));
  for (std::int64_t distance = 1 - kind.kv_len; distance < kind.q_len; ++distance) {
    of_distance.push_back(bucket_of(distance, buckets, kind.causal));
  }
  std::vector<std::int64_t> rows;
  rows.reserve(at(kind.q_len * kind.kv_len));
  for (std::int64_t q = 0; q < kind.q_len; ++q) {
    // Keys rise, so distances fall.
    const auto first = of_distance.rbegin() + (kind.q_len - 1 - q);
    rows.insert(rows.end(), first, first + kind.kv_len);
  }
  return rows;
}

}  // namespace

std::size_t GraphTranslator::attended_operands() {
  return operands() - (operands() > 1 && is_parameter(operands() - 1) ? 1 : 0);
}

GraphTranslator::Written GraphTranslator::relative_table(const Attention& kind) {
  Written table = operand(operands() - 1);
  const bool is_t5 = table.shape.size() == 2 && table.shape[1] == kind.heads &&
                     table.shape[0] % 2 == 0 && table.shape[0] >= 4 &&
                     kind.heads == kind.kv_heads && kind.samples == 1;
  if (!is_t5) refuse("nothing says which relative position each row of its table is for");
  return table;
}

GraphTranslator::Written GraphTranslator::relative_bias(const Attention& kind) {
  const Written table = relative_table(kind);
  // Layers that share a table read it in the same places.
  ValueId& places = places_in_table_.try_emplace(table.value, -1).first->second;
  if (places < 0) {
    const std::vector<std::int64_t> rows = bucket_rows(kind, table.shape[0]);
    places = builder_.constant(tensor_of(ElementType::i64, {kind.q_len, kind.kv_len}, rows));
  }
  const ValueId biases = node("Gather", {table.value, places});
  return {node("Transpose", {biases}, {{"perm", Shape{2, 0, 1}}}),
          {kind.heads, kind.q_len, kind.kv_len}};
}

std::vector<ValueId> GraphTranslator::queries_keys_values(const Attention& kind) {
  const std::size_t count = attended_operands();
  const std::int64_t q = kind.heads * kind.qk_dim;
  const std::int64_t k = kind.kv_heads * kind.qk_dim;
  const std::int64_t v = kind.kv_heads * kind.v_dim;
  const auto has_width = [&](std::size_t i, std::int64_t width) {
    return operand(i).shape.size() == 2 && operand(i).shape[1] == width;
  };
  if (count == 1 && has_width(0, q + k + v)) {
    const ValueId x = operand(0).value;
    return {sliced(x, 1, 0, q), sliced(x, 1, q, q + k), sliced(x, 1, q + k, q + k + v)};
  }
  if (count == 2 && has_width(0, q) && has_width(1, k + v)) {
    const ValueId kv = operand(1).value;
    return {operand(0).value, sliced(kv, 1, 0, k), sliced(kv, 1, k, k + v)};
  }
  if (count == 3 && has_width(0, q) && has_width(1, k) && has_width(2, v)) {
    return {operand(0).value, operand(1).value, operand(2).value};
  }
  refuse("nothing says where its queries, keys and values are");
}

GraphTranslator::Written GraphTranslator::heads(ValueId x, const HeadsOf& of, bool transposed) {
  const ValueId apart = reshaped(x, {of.samples, of.length, of.heads, of.width});
  if (transposed) {
    const ValueId turned = node("Transpose", {apart}, {{"perm", Shape{0, 2, 3, 1}}});
    const Shape shape{of.samples * of.heads, of.width, of.length};
    return {reshaped(turned, shape), shape};
  }
  const ValueId turned = node("Transpose", {apart}, {{"perm", Shape{0, 2, 1, 3}}});
  const Shape shape{of.samples * of.heads, of.length, of.width};
  return {reshaped(turned, shape), shape};
}

/// 0 where a query sees a key, and so little elsewhere that its weight is 0.
GraphTranslator::Written GraphTranslator::mask(const Attention& kind) {
  std::vector<double> numbers;
  numbers.reserve(at(kind.q_len * kind.kv_len));
  for (std::int64_t q = 0; q < kind.q_len; ++q) {
    const std::int64_t last = q + kind.kv_len - kind.q_len;
    for (std::int64_t k = 0; k < kind.kv_len; ++k) {
      const bool is_later = kind.causal && k > last;
      const bool is_left_behind = kind.window > 0 && k <= last - kind.window;
      numbers.push_back(is_later || is_left_behind ? -1e9 : 0);
    }
  }
  const Shape shape{kind.q_len, kind.kv_len};
  return {builder_.constant(tensor_of(ElementType::f32, shape, numbers)), shape};
}

GraphTranslator::Written GraphTranslator::whole_attention(const Attention& kind) {
  if (kind.samples != 1) refuse("it is of several sequences");
  std::vector<ValueId> inputs = queries_keys_values(kind);
  if (attended_operands() < operands()) inputs.push_back(relative_table(kind).value);
  const std::vector<Attribute> attributes = {
      {"heads", kind.heads},   {"kv_heads", kind.kv_heads},
      {"q_len", kind.q_len},   {"kv_len", kind.kv_len},
      {"qk_dim", kind.qk_dim}, {"v_dim", kind.v_dim},
      {"window", kind.window}, {"causal", std::int64_t{kind.causal ? 1 : 0}}};
  return {node("Attention", std::move(inputs), attributes, kBraidDomain),
          {kind.q_len, kind.heads * kind.v_dim}};
}

GraphTranslator::Written GraphTranslator::result(const Attention& kind) {
  if (attention_ == AttentionForm::whole) return whole_attention(kind);
  const std::int64_t samples = kind.samples;
  constexpr std::int64_t most_scores = std::int64_t{1} << 30;
  if (samples * kind.heads * kind.q_len * kind.kv_len > most_scores) {
    throw Error(fmt::format("{}: {}: its scores of {} by {} tokens are too many to be written out",
                            graph_.name, op_->name, kind.q_len, kind.kv_len),
                "give a lesser --seq-len");
  }
  const std::vector<ValueId> qkv = queries_keys_values(kind);
  const std::int64_t stacked = samples * kind.kv_heads;
  const std::int64_t rows = kind.heads / kind.kv_heads * kind.q_len;
  ValueId q = heads(qkv[0], {samples, kind.heads, kind.q_len, kind.qk_dim}, false).value;
  if (kind.heads != kind.kv_heads) q = reshaped(q, {stacked, rows, kind.qk_dim});
  const ValueId k = heads(qkv[1], {samples, kind.kv_heads, kind.kv_len, kind.qk_dim}, true).value;
  const ValueId v = heads(qkv[2], {samples, kind.kv_heads, kind.kv_len, kind.v_dim}, false).value;
  ValueId scores = node("MatMul", {q, k});
  scores = node("Mul", {scores, builder_.real(1 / std::sqrt(static_cast<double>(kind.qk_dim)))});
  if (attended_operands() < operands()) {
    scores = node("Add", {scores, relative_bias(kind).value});
  }
  if (kind.causal || kind.window > 0) {
    if (kind.heads != kind.kv_heads) {
      scores = reshaped(scores, {samples * kind.heads, kind.q_len, kind.kv_len});
    }
    scores = node("Add", {scores, mask(kind).value});
    if (kind.heads != kind.kv_heads) scores = reshaped(scores, {stacked, rows, kind.kv_len});
  }
  const ValueId weights = node("Softmax", {scores}, {{"axis", std::int64_t{-1}}});
  ValueId y = node("MatMul", {weights, v});
  y = reshaped(y, {samples, kind.heads, kind.q_len, kind.v_dim});
  y = node("Transpose", {y}, {{"perm", Shape{0, 2, 1, 3}}});
  const Shape shape{samples * kind.q_len, kind.heads * kind.v_dim};
  return {reshaped(y, shape), shape};
}

}  // namespace braid
