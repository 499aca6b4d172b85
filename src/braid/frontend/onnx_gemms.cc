#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "braid/frontend/onnx_node.h"
#include "braid/frontend/onnx_rules.h"
#include "braid/program/einsum_equation.h"

namespace braid {
namespace {

using Dims = OnnxNodeView::Dims;

bool is_weight(const OnnxNodeView& node, std::size_t input) {
  return node.input(input).source == OnnxValue::Source::initializer;
}

Dims leading(const Dims& dims) { return {dims.begin(), dims.end() - 2}; }

/// batch × [m × k]·[k × n] of operands `a` and `b` of a node, as numpy.matmul defines it.
MatMul gemm(OnnxNodeView& node, std::size_t a, std::size_t b, OnnxType type) {
  node.need_rank(a, 1, 1 << 10);
  node.need_rank(b, 1, 1 << 10);
  Dims left = node.dims(a);
  Dims right = node.dims(b);
  const bool left_is_vector = left.size() == 1;
  const bool right_is_vector = right.size() == 1;
  if (left_is_vector) left.insert(left.begin(), 1);
  if (right_is_vector) right.push_back(1);
  MatMul matmul{.batch = 1, .m = left[left.size() - 2], .n = right.back(), .k = left.back()};
  if (right[right.size() - 2] != matmul.k) {
    node.fail(fmt::format("the inner sizes of {} and {} differ", text_of(node.dims(a)),
                          text_of(node.dims(b))));
  }
  Dims out = node.broadcast(leading(left), leading(right));
  matmul.batch = node.product(out);
  matmul.weight = is_weight(node, a) || is_weight(node, b);
  if (matmul.batch > 0 && node.product(leading(right)) == 1) {
    // One right operand for all rows.
    matmul.m = node.times(matmul.m, matmul.batch);
    matmul.batch = 1;
  }
  if (!left_is_vector) out.push_back(left[left.size() - 2]);
  if (!right_is_vector) out.push_back(right.back());
  if (is_weight(node, a) && !is_weight(node, b)) std::swap(matmul.m, matmul.n);
  node.set(0, type, std::move(out));
  return matmul;
}

std::optional<OperatorKind> matmul(OnnxNodeView& node) {
  node.need_inputs(2, 2);
  return gemm(node, 0, 1, node.type(0));
}

std::optional<OperatorKind> matmul_integer(OnnxNodeView& node) {
  node.need_inputs(2, 4);
  node.not_trained(2);
  node.not_trained(3);
  return gemm(node, 0, 1, OnnxType::i32);
}

std::optional<OperatorKind> qlinear_matmul(OnnxNodeView& node) {
  node.need_inputs(8, 8);
  for (const std::size_t scale : {1, 2, 4, 5, 6, 7}) node.not_trained(scale);
  return gemm(node, 0, 3, node.type(7));
}

std::optional<OperatorKind> gemm(OnnxNodeView& node) {
  node.need_inputs(2, 3);
  node.need_rank(0, 2, 2);
  node.need_rank(1, 2, 2);
  Dims a = node.dims(0);
  Dims b = node.dims(1);
  if (node.integer("transA", 0) != 0) std::swap(a[0], a[1]);
  if (node.integer("transB", 0) != 0) std::swap(b[0], b[1]);
  if (a[1] != b[0]) {
    node.fail(fmt::format("the inner sizes of {} and {} differ", text_of(a), text_of(b)));
  }
  const Dims out{a[0], b[1]};
  if (node.has(2) && node.broadcast(out, node.dims(2)) != out) {
    node.fail(fmt::format("{} cannot be added to {}", text_of(node.dims(2)), text_of(out)));
  }
  node.set(0, node.type(0), out);
  MatMul kind{.batch = 1, .m = a[0], .n = b[1], .k = a[1]};
  kind.weight = is_weight(node, 0) || is_weight(node, 1);
  kind.bias = node.has(2);
  if (is_weight(node, 0) && !is_weight(node, 1)) std::swap(kind.m, kind.n);
  return kind;
}

std::optional<OperatorKind> einsum(OnnxNodeView& node) {
  node.need_inputs(1, 2);
  std::vector<Dims> shapes;
  for (std::size_t i = 0; i < node.input_count(); ++i) shapes.push_back(node.dims(i));
  const EinsumEquation equation = einsum_equation(
      node.text("equation", ""), shapes, [&](const std::string& message) { node.fail(message); });
  Dims out;
  for (const char sign : equation.output) out.push_back(equation.size(sign));
  node.set(0, node.type(0), out);
  if (node.input_count() == 1) return Reduction{node.elements(0)};
  // Signs of both operands and the output count batches, of both only are summed over.
  MatMul kind;
  kind.weight = is_weight(node, 0) || is_weight(node, 1);
  const auto has = [](const std::string& signs, char sign) {
    return signs.find(sign) != std::string::npos;
  };
  for (const char sign : equation.signs()) {
    const bool left = has(equation.operands[0], sign);
    const bool right = has(equation.operands[1], sign);
    const bool kept = has(equation.output, sign);
    std::int64_t& side = left && right ? (kept ? kind.batch : kind.k)
                         : !kept       ? kind.k
                         : left        ? kind.m
                                       : kind.n;
    side = node.times(side, equation.size(sign));
  }
  if (is_weight(node, 0) && !is_weight(node, 1)) std::swap(kind.m, kind.n);
  return kind;
}

constexpr std::array<OnnxRuleEntry, 5> gemm_rules{{
    {"Einsum", einsum},
    {"Gemm", gemm},
    {"MatMul", matmul},
    {"MatMulInteger", matmul_integer},
    {"QLinearMatMul", qlinear_matmul},
}};

}  // namespace

std::span<const OnnxRuleEntry> onnx_gemm_rules() { return gemm_rules; }

}  // namespace braid
