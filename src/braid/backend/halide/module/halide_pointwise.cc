#include <algorithm>
#include <array>
#include <map>

#include "braid/backend/halide/module/halide_network.h"
#include "braid/base/index.h"

// What works element by element.

namespace braid {
namespace {

using Halide::Expr;

Expr sigmoid(const Expr& x) { return 1.0F / (1.0F + Halide::exp(-x)); }

/// By exp, which has vectors where the library's tanh has none.
Expr tanh_of(const Expr& x) {
  const Expr most = Halide::clamp(x, -15.0F, 15.0F);
  return 1.0F - 2.0F / (1.0F + Halide::exp(2.0F * most));
}

Expr gelu(const NodeCall& call, const Expr& x) {
  if (call.text("approximate", "none") == "tanh") {
    return 0.5F * x * (1.0F + tanh_of(0.7978845608F * (x + 0.044715F * x * x * x)));
  }
  return 0.5F * x * (1.0F + Halide::erf(x * 0.7071067812F));
}

using OfOne = Expr (*)(const NodeCall&, const Expr&);
using OfTwo = Expr (*)(const Expr&, const Expr&);

Expr real(double number) { return Expr(static_cast<float>(number)); }

const std::map<std::string, OfOne, std::less<>>& functions_of_one() {
  static const std::map<std::string, OfOne, std::less<>> all{
      {"Abs", [](const NodeCall&, const Expr& x) { return Halide::abs(x); }},
      {"Elu",
       [](const NodeCall& call, const Expr& x) {
         const Expr below = real(call.real("alpha", 1)) * (Halide::exp(x) - 1.0F);
         return Halide::select(x < 0.0F, below, x);
       }},
      {"Erf", [](const NodeCall&, const Expr& x) { return Halide::erf(x); }},
      {"Exp", [](const NodeCall&, const Expr& x) { return Halide::exp(x); }},
      {"Gelu", gelu},
      {"HardSigmoid",
       [](const NodeCall& call, const Expr& x) {
         return Halide::clamp(x * real(call.real("alpha", 0.2)) + real(call.real("beta", 0.5)),
                              0.0F, 1.0F);
       }},
      {"HardSwish", [](const NodeCall&,
                       const Expr& x) { return x * Halide::clamp(x / 6.0F + 0.5F, 0.0F, 1.0F); }},
      {"Identity", [](const NodeCall&, const Expr& x) { return x; }},
      {"LeakyRelu",
       [](const NodeCall& call, const Expr& x) {
         return Halide::select(x < 0.0F, x * real(call.real("alpha", 0.01)), x);
       }},
      {"Neg", [](const NodeCall&, const Expr& x) { return -x; }},
      {"Reciprocal", [](const NodeCall&, const Expr& x) { return 1.0F / x; }},
      {"Relu", [](const NodeCall&, const Expr& x) { return Halide::max(x, 0.0F); }},
      {"Sigmoid", [](const NodeCall&, const Expr& x) { return sigmoid(x); }},
      {"Sqrt", [](const NodeCall&, const Expr& x) { return Halide::sqrt(x); }},
      {"Swish", [](const NodeCall& call,
                   const Expr& x) { return x * sigmoid(real(call.real("alpha", 1)) * x); }},
      {"Tanh", [](const NodeCall&, const Expr& x) { return tanh_of(x); }},
  };
  return all;
}

const std::map<std::string, OfTwo, std::less<>>& functions_of_two() {
  static const std::map<std::string, OfTwo, std::less<>> all{
      {"Add", [](const Expr& a, const Expr& b) { return a + b; }},
      {"Div", [](const Expr& a, const Expr& b) { return a / b; }},
      {"Max", [](const Expr& a, const Expr& b) { return Halide::max(a, b); }},
      {"Min", [](const Expr& a, const Expr& b) { return Halide::min(a, b); }},
      {"Mul", [](const Expr& a, const Expr& b) { return a * b; }},
      {"PRelu", [](const Expr& a, const Expr& b) { return Halide::select(a < 0.0F, a * b, a); }},
      {"Sub", [](const Expr& a, const Expr& b) { return a - b; }},
  };
  return all;
}

/// A limit of Clip, from a constant operand or, in older versions, an attribute.
std::optional<double> limit_of(const HalideNode& node, std::size_t operand, std::string_view name) {
  if (node.call->has(operand)) return node.call->scalar(operand);
  if (operand < node.call->node().inputs.size() && node.call->node().inputs[operand] >= 0) {
    node.call->fail("has a limit that is computed");
  }
  if (!node.call->has_attribute(name)) return std::nullopt;
  return node.call->real(name, 0);
}

HalideElement clip_element(const HalideNode& node) {
  const auto least = limit_of(node, 1, "min"), most = limit_of(node, 2, "max");
  return [x = node.operands[0].element, least, most](const HalideExprs& at_result) {
    Expr value = x(at_result);
    if (least) value = Halide::max(value, real(*least));
    if (most) value = Halide::min(value, real(*most));
    return value;
  };
}

}  // namespace

Expr spread_element(const HalideTensor& operand, const HalideExprs& at_result) {
  HalideExprs coordinates;
  const std::size_t shift = at_result.size() - operand.shape.size();
  for (std::size_t d = 0; d < operand.shape.size(); ++d) {
    coordinates.push_back(operand.shape[d] == 1 ? Expr(0) : at_result[d + shift]);
  }
  return operand.element(coordinates);
}

std::optional<HalideElement> pointwise_element(const HalideNode& node) {
  const std::string& operation = node.call->operation();
  if (operation == "Clip") return clip_element(node);
  const auto one = functions_of_one().find(operation);
  if (one != functions_of_one().end()) {
    // Of the call only attributes are read later, which are the program's.
    return [x = node.operands[0].element, call = *node.call, function = one->second](
               const HalideExprs& at_result) { return function(call, x(at_result)); };
  }
  const auto two = functions_of_two().find(operation);
  if (two == functions_of_two().end()) return std::nullopt;
  if (node.operands.size() != 2 || node.call->has_attribute("axis") ||
      node.call->broadcast(node.operands[0].shape, node.operands[1].shape) != node.shape) {
    node.call->fail("is done for two operands alone, spread from the last dimension on");
  }
  return [a = node.operands[0], b = node.operands[1],
          function = two->second](const HalideExprs& at_result) {
    return function(spread_element(a, at_result), spread_element(b, at_result));
  };
}

bool works_by_element(const std::string& operation) {
  return operation == "Clip" || functions_of_one().contains(operation) ||
         functions_of_two().contains(operation);
}

bool is_halide_operation(const std::string& operation) {
  static const std::array others{"Conv",      "Flatten",   "Gemm",       "LayerNormalization",
                                 "MatMul",    "ReduceMax", "ReduceMean", "ReduceSum",
                                 "Reshape",   "Slice",     "Softmax",    "Squeeze",
                                 "Transpose", "Unsqueeze"};
  return works_by_element(operation) ||
         std::find(others.begin(), others.end(), operation) != others.end();
}

}  // namespace braid
