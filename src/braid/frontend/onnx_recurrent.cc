#include <array>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "braid/frontend/onnx_node.h"
#include "braid/frontend/onnx_rules.h"

namespace braid {
namespace {

using Dims = OnnxNodeView::Dims;

/// RNN, GRU and LSTM: X [steps, batch, input], W [directions, gates · hidden, input],
/// R [directions, gates · hidden, hidden]; both GEMMs of a step count as one of [x h]·[W R].
std::optional<OperatorKind> recurrent(OnnxNodeView& node, std::int64_t gates) {
  node.need_inputs(3, 8);
  for (const std::size_t each : {0, 1, 2}) node.need_rank(each, 3, 3);
  Dims x = node.dims(0);
  const bool batch_first = node.integer("layout", 0) != 0;
  if (batch_first) std::swap(x[0], x[1]);
  const Dims& w = node.dims(1);
  const Dims& r = node.dims(2);
  const std::int64_t directions = w[0];
  const std::int64_t hidden = r[2];
  const bool both = node.text("direction", "forward") == "bidirectional";
  if (directions != (both ? 2 : 1) || r[0] != directions || w[1] != r[1] || w[2] != x[2] ||
      w[1] != node.times(gates, hidden) ||
      (node.attribute("hidden_size") != nullptr && node.integer("hidden_size", 0) != hidden)) {
    node.fail(fmt::format("weights of the shapes {} and {} do not fit the input {}", text_of(w),
                          text_of(r), text_of(node.dims(0))));
  }
  const std::int64_t steps = x[0];
  const std::int64_t batch = x[1];
  const OnnxType type = node.type(0);
  const Dims last = batch_first ? Dims{batch, directions, hidden} : Dims{directions, batch, hidden};
  node.set(0, type,
           batch_first ? Dims{batch, steps, directions, hidden}
                       : Dims{steps, directions, batch, hidden});
  node.set(1, type, last);
  node.set(2, type, last);
  return Recurrent{
      .steps = node.times(steps, directions), .rows = batch, .n = w[1], .k = w[2] + hidden};
}

constexpr std::array<OnnxRuleEntry, 3> recurrent_rules{{
    {"GRU", [](OnnxNodeView& node) { return recurrent(node, 3); }},
    {"LSTM", [](OnnxNodeView& node) { return recurrent(node, 4); }},
    {"RNN", [](OnnxNodeView& node) { return recurrent(node, 1); }},
}};

}  // namespace

std::span<const OnnxRuleEntry> onnx_recurrent_rules() { return recurrent_rules; }

}  // namespace braid
