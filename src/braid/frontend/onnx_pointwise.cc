#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "braid/frontend/onnx_fold.h"
#include "braid/frontend/onnx_node.h"
#include "braid/frontend/onnx_rules.h"
#include "braid/frontend/onnx_types.h"
#include "braid/graph/pointwise_figures.h"

namespace braid {
namespace {

using Keeps = Elementwise::Keeps;
using Dims = OnnxNodeView::Dims;

/// Arithmetic per element and what the gradient needs. Transcendental functions count as several
/// operations: about as many as a short polynomial and a division take.
struct Cost {
  std::string_view operation;
  double flops;
  Keeps keeps;
};

constexpr std::array<Cost, 66> costs{{
    {"Abs", 1, Keeps::inputs},
    {"Acos", 10, Keeps::inputs},
    {"Acosh", 10, Keeps::inputs},
    {"Add", 1, Keeps::nothing},
    {"And", 1, Keeps::nothing},
    {"Asin", 10, Keeps::inputs},
    {"Asinh", 10, Keeps::inputs},
    {"Atan", 10, Keeps::inputs},
    {"Atanh", 10, Keeps::inputs},
    {"BitShift", 1, Keeps::nothing},
    {"BitwiseAnd", 1, Keeps::nothing},
    {"BitwiseNot", 1, Keeps::nothing},
    {"BitwiseOr", 1, Keeps::nothing},
    {"BitwiseXor", 1, Keeps::nothing},
    {"Ceil", 1, Keeps::nothing},
    {"Celu", 4, Keeps::inputs},
    {"Clip", 2, Keeps::mask},
    {"Cos", 10, Keeps::inputs},
    {"Cosh", 10, Keeps::inputs},
    {"Div", 1, Keeps::inputs},
    {"Elu", 3, Keeps::inputs},
    {"Equal", 1, Keeps::nothing},
    {"Erf", 8, Keeps::inputs},
    {"Exp", 4, Keeps::inputs},
    {"Floor", 1, Keeps::nothing},
    {"Gelu", kGeluFlops, Keeps::inputs},
    {"Greater", 1, Keeps::nothing},
    {"GreaterOrEqual", 1, Keeps::nothing},
    {"HardSigmoid", 3, Keeps::mask},
    {"HardSwish", 4, Keeps::inputs},
    {"IsInf", 1, Keeps::nothing},
    {"IsNaN", 1, Keeps::nothing},
    {"LeakyRelu", 2, Keeps::mask},
    {"Less", 1, Keeps::nothing},
    {"LessOrEqual", 1, Keeps::nothing},
    {"Log", 4, Keeps::inputs},
    {"Max", 1, Keeps::mask},
    {"Mean", 1, Keeps::nothing},
    {"Min", 1, Keeps::mask},
    {"Mish", 10, Keeps::inputs},
    {"Mod", 1, Keeps::nothing},
    {"Mul", 1, Keeps::inputs},
    {"Neg", 1, Keeps::nothing},
    {"Not", 1, Keeps::nothing},
    {"Or", 1, Keeps::nothing},
    {"PRelu", 2, Keeps::inputs},
    {"Pow", 8, Keeps::inputs},
    {"Reciprocal", 1, Keeps::inputs},
    {"Relu", 1, Keeps::mask},
    {"Round", 1, Keeps::nothing},
    {"Selu", 4, Keeps::inputs},
    {"Shrink", 2, Keeps::mask},
    {"Sigmoid", 4, Keeps::inputs},
    {"Sign", 1, Keeps::nothing},
    {"Sin", 10, Keeps::inputs},
    {"Sinh", 10, Keeps::inputs},
    {"Softplus", 8, Keeps::inputs},
    {"Softsign", 3, Keeps::inputs},
    {"Sqrt", 1, Keeps::inputs},
    {"Sub", 1, Keeps::nothing},
    {"Sum", 1, Keeps::nothing},
    {"Swish", 5, Keeps::inputs},
    {"Tan", 10, Keeps::inputs},
    {"Tanh", 6, Keeps::inputs},
    {"ThresholdedRelu", 1, Keeps::mask},
    {"Xor", 1, Keeps::nothing},
}};

bool is_comparison(std::string_view name) {
  constexpr std::array<std::string_view, 11> comparisons{
      "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "And", "Or",
      "Xor",   "Not",     "IsInf",          "IsNaN"};
  return std::find(comparisons.begin(), comparisons.end(), name) != comparisons.end();
}

std::int64_t elements_of_result(OnnxNodeView& node) {
  std::int64_t count = 1;
  for (const std::int64_t size : node.results().front().dims) count *= size;
  return count;
}

std::size_t live_count(const OnnxNodeView& node) {
  std::size_t live = 0;
  for (std::size_t i = 0; i < node.input_count(); ++i) live += node.is_live(i) ? 1 : 0;
  return live;
}

/// A dimension-by-dimension result of operands that are broadcast against each other.
Dims broadcast_all(const OnnxNodeView& node, std::size_t count) {
  Dims dims = node.dims(0);
  for (std::size_t i = 1; i < count; ++i) {
    if (node.has(i)) dims = node.broadcast(dims, node.dims(i));
  }
  return dims;
}

/// Operands with other meanings than an operand of the arithmetic.
bool only_first_counts(std::string_view name) { return name == "Clip"; }

/// Before version 7, the second operand was lined up with `axis` of the first one.
Dims result_dims(const OnnxNodeView& node) {
  if (only_first_counts(node.operation())) return node.dims(0);
  const bool by_channel = node.operation() == "PRelu" && node.opset() < 9;
  if (by_channel || (node.opset() < 7 && node.integer("broadcast", 0) != 0)) return node.dims(0);
  return broadcast_all(node, node.input_count());
}

std::optional<OperatorKind> pointwise(OnnxNodeView& node) {
  const auto* cost = std::lower_bound(
      costs.begin(), costs.end(), node.operation(),
      [](const Cost& each, std::string_view name) { return each.operation < name; });
  node.need_inputs(1, 1 << 20);
  node.set(0, is_comparison(cost->operation) ? OnnxType::boolean : node.type(0), result_dims(node));
  fold_pointwise(node);
  Keeps keeps = cost->keeps;
  const std::size_t live = live_count(node);
  // The gradient of a product with, or a quotient by, a constant is a multiple.
  const bool scales = node.operation() == "Mul" || (node.operation() == "Div" && node.is_live(0));
  if (scales && live == 1 && node.input_count() == 2) keeps = Keeps::nothing;
  const bool variadic = node.operation() == "Max" || node.operation() == "Min" ||
                        node.operation() == "Sum" || node.operation() == "Mean";
  const double times =
      variadic ? std::max<double>(1, static_cast<double>(node.input_count()) - 1) : 1;
  return Elementwise{elements_of_result(node), cost->flops * times, keeps};
}

std::optional<OperatorKind> where(OnnxNodeView& node) {
  node.need_inputs(3, 3);
  node.set(0, node.type(1), broadcast_all(node, 3));
  fold_pointwise(node);
  return Elementwise{elements_of_result(node), 1, Keeps::mask};
}

std::optional<OperatorKind> cast(OnnxNodeView& node) {
  OnnxType to = OnnxType::undefined;
  if (node.operation() == "CastLike") {
    node.need_inputs(2, 2);
    to = node.type(1);
  } else {
    node.need_inputs(1, 1);
    const OnnxAttribute* given = node.attribute("to");
    // The oldest version has the type's name, which only old exporters wrote.
    if (given != nullptr && std::holds_alternative<std::string>(given->value)) {
      node.fail("versions of Cast before 6 are not supported", "convert the model to opset 13");
    }
    to = static_cast<OnnxType>(node.need_integer("to"));
  }
  if (bits_of(to) == 0) node.fail("casts to a type that has no numbers");
  node.set(0, to, node.dims(0));
  node.same_numbers_as(0);
  fold_pointwise(node);
  if (to == node.type(0)) return DataMovement{.view = true};
  return Elementwise{elements_of_result(node), 1, Keeps::nothing};
}

std::optional<OperatorKind> quantize(OnnxNodeView& node) {
  node.need_inputs(2, 3);
  node.not_trained(1);
  node.not_trained(2);
  const bool back = node.operation() == "DequantizeLinear";
  const OnnxType to = back ? node.type(1) : node.has(2) ? node.type(2) : OnnxType::u8;
  node.set(0, to, node.dims(0));
  node.same_numbers_as(0);
  return Elementwise{elements_of_result(node), 2, Keeps::nothing};
}

std::optional<OperatorKind> dynamic_quantize(OnnxNodeView& node) {
  node.need_inputs(1, 1);
  node.set(0, OnnxType::u8, node.dims(0));
  node.set(1, OnnxType::f32, {});
  node.set(2, OnnxType::u8, {});
  return Elementwise{elements_of_result(node), 4, Keeps::nothing};
}

std::optional<OperatorKind> dropout(OnnxNodeView& node) {
  node.need_inputs(1, 3);
  node.set(0, node.type(0), node.dims(0));
  node.set(1, node.opset() < 10 ? node.type(0) : OnnxType::boolean, node.dims(0));
  // Exported for inference it does nothing; training_mode came with version 12.
  const auto* mode = node.has(2) ? node.integers(std::size_t{2}) : nullptr;
  if (mode != nullptr && !mode->empty() && mode->front() != 0) {
    return Elementwise{elements_of_result(node), 2, Keeps::mask};
  }
  return DataMovement{.view = true};
}

/// y = f(x + bias) and y = f(x) of the contributed operations.
std::optional<OperatorKind> gelu_with_bias(OnnxNodeView& node) {
  node.need_inputs(1, 2);
  node.set(0, node.type(0), node.dims(0));
  return Elementwise{elements_of_result(node), kGeluFlops + (node.has(1) ? 1 : 0), Keeps::inputs};
}

constexpr std::array<OnnxRuleEntry, 10> others{{
    {"BiasGelu", gelu_with_bias},
    {"Cast", cast},
    {"CastLike", cast},
    {"DequantizeLinear", quantize},
    {"Dropout", dropout},
    {"DynamicQuantizeLinear", dynamic_quantize},
    {"FastGelu", gelu_with_bias},
    {"QuantizeLinear", quantize},
    {"QuickGelu", gelu_with_bias},
    {"Where", where},
}};

std::vector<OnnxRuleEntry> all_rules() {
  std::vector<OnnxRuleEntry> rules(others.begin(), others.end());
  for (const Cost& cost : costs) rules.push_back({cost.operation, pointwise});
  return rules;
}

}  // namespace

std::span<const OnnxRuleEntry> onnx_pointwise_rules() {
  static const std::vector<OnnxRuleEntry> rules = all_rules();
  return rules;
}

}  // namespace braid
