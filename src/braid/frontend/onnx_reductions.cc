#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "braid/frontend/onnx_node.h"
#include "braid/frontend/onnx_rules.h"

namespace braid {
namespace {

using Dims = OnnxNodeView::Dims;

Dims without(const OnnxNodeView& node, const Dims& dims, const Dims& axes, bool keep) {
  std::vector<bool> gone(dims.size(), false);
  for (const std::int64_t each : axes) gone[node.axis(each, dims.size())] = true;
  Dims out;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (!gone[d]) out.push_back(dims[d]);
    if (gone[d] && keep) out.push_back(1);
  }
  return out;
}

Dims all_axes(std::size_t rank) {
  Dims axes(rank);
  for (std::size_t d = 0; d < rank; ++d) axes[d] = static_cast<std::int64_t>(d);
  return axes;
}

/// The product or sum of a list of whole numbers, as exporters compute sizes with.
void fold(OnnxNodeView& node) {
  const auto* values = node.integers(std::size_t{0});
  if (values == nullptr || node.rank(0) > 1) return;
  std::int64_t result = node.operation() == "ReduceProd" ? 1 : 0;
  for (const std::int64_t value : *values) {
    if (node.operation() == "ReduceProd") {
      if (__builtin_mul_overflow(result, value, &result)) return;
    } else if (node.operation() == "ReduceSum") {
      if (__builtin_add_overflow(result, value, &result)) return;
    } else if (node.operation() == "ReduceMax" && !values->empty()) {
      result = *std::max_element(values->begin(), values->end());
    } else {
      return;
    }
  }
  node.set_values(0, std::vector<std::int64_t>{result});
}

std::optional<OperatorKind> reduce(OnnxNodeView& node) {
  node.need_inputs(1, 2);
  const bool keep = node.integer("keepdims", 1) != 0;
  std::optional<Dims> axes;
  if (node.has(1) && node.integers(std::size_t{1}) == nullptr) {
    node.set_declared(0, node.type(0), 1);
    return Reduction{node.elements(0)};
  }
  axes = node.integers_of(1, "axes");
  if (!axes || axes->empty()) {
    if (node.integer("noop_with_empty_axes", 0) != 0) {
      node.set(0, node.type(0), node.dims(0));
      return DataMovement{.view = true};
    }
    axes = all_axes(node.rank(0));
  }
  node.set(0, node.type(0), without(node, node.dims(0), *axes, keep));
  fold(node);
  return Reduction{node.elements(0)};
}

std::optional<OperatorKind> arg(OnnxNodeView& node) {
  node.need_inputs(1, 1);
  node.set(
      0, OnnxType::i64,
      without(node, node.dims(0), {node.integer("axis", 0)}, node.integer("keepdims", 1) != 0));
  return Reduction{node.elements(0)};
}

std::optional<OperatorKind> top_k(OnnxNodeView& node) {
  node.need_inputs(1, 2);
  Dims out = node.dims(0);
  const std::size_t axis = node.axis(node.integer("axis", -1), out.size());
  if (node.has(1) && node.integers(std::size_t{1}) == nullptr) {
    node.set_declared(0, node.type(0), 1);
    node.set_declared(1, OnnxType::i64, 1);
    return Reduction{node.elements(0)};
  }
  const auto counts = node.has(1) ? node.integers_of(1, "") : Dims{node.need_integer("k")};
  if (counts->size() != 1 || counts->front() < 0 || counts->front() > out[axis]) {
    node.fail(fmt::format("asks for more than the {} elements there are", out[axis]));
  }
  out[axis] = counts->front();
  node.set(0, node.type(0), out);
  node.set(1, OnnxType::i64, out);
  return Reduction{node.elements(0)};
}

std::optional<OperatorKind> cumulate(OnnxNodeView& node) {
  node.need_inputs(2, 2);
  node.set(0, node.type(0), node.dims(0));
  return Reduction{node.elements(0)};
}

/// Losses: operand 0 has its classes in dimension 1.
std::optional<OperatorKind> loss(OnnxNodeView& node) {
  node.need_inputs(2, 3);
  node.need_rank(0, 2, 1 << 10);
  const Dims& in = node.dims(0);
  Dims rows = in;
  rows.erase(rows.begin() + 1);
  const bool reduced = node.text("reduction", "mean") != "none";
  node.set(0, node.type(0), reduced ? Dims{} : rows);
  node.set(1, node.type(0), in);
  if (node.operation() == "NegativeLogLikelihoodLoss") return Reduction{node.elements(0)};
  return Loss{node.product(rows), in[1]};
}

constexpr std::array<OnnxRuleEntry, 16> reduction_rules{{
    {"ArgMax", arg},
    {"ArgMin", arg},
    {"CumSum", cumulate},
    {"NegativeLogLikelihoodLoss", loss},
    {"ReduceL1", reduce},
    {"ReduceL2", reduce},
    {"ReduceLogSum", reduce},
    {"ReduceLogSumExp", reduce},
    {"ReduceMax", reduce},
    {"ReduceMean", reduce},
    {"ReduceMin", reduce},
    {"ReduceProd", reduce},
    {"ReduceSum", reduce},
    {"ReduceSumSquare", reduce},
    {"SoftmaxCrossEntropyLoss", loss},
    {"TopK", top_k},
}};

}  // namespace

std::span<const OnnxRuleEntry> onnx_reduction_rules() { return reduction_rules; }

}  // namespace braid
