#include "braid/backend/libtorch/module/torch_operation.h"

namespace braid {
namespace {

using OfOne = at::Tensor (*)(const at::Tensor&);
using OfOneInto = at::Tensor& (*)(at::Tensor& out, const at::Tensor&);
using OfTwo = at::Tensor (*)(const at::Tensor&, const at::Tensor&);
using OfTwoInto = at::Tensor& (*)(at::Tensor& out, const at::Tensor&, const at::Tensor&);

template <OfOne function, OfOneInto into>
TorchOperation of_real(const TorchNode& node) {
  node.need_real(0);
  return torch_operation([](TorchOperands x) { return function(x[0]); },
                         [](TorchOperands x, at::Tensor& out) { into(out, x[0]); });
}

/// Without a function that writes to memory that is there.
template <OfOne function>
TorchOperation of_one(const TorchNode&) {
  return torch_operation([](TorchOperands x) { return function(x[0]); });
}

/// Fails where the first two operands are broadcast otherwise than from the last dimension on, as
/// old versions of ONNX say by attributes.
void need_usual_broadcast(const TorchNode& node) {
  if (node.broadcast(node.form(0).shape, node.form(1).shape) != node.out_form().shape ||
      node.has_attribute("axis")) {
    node.fail("is broadcast otherwise");
  }
}

template <OfTwo function, OfTwoInto into>
TorchOperation of_two(const TorchNode& node) {
  if (node.operand_count() != 2) node.fail("is done for two operands alone");
  need_usual_broadcast(node);
  return torch_operation([](TorchOperands x) { return function(x[0], x[1]); },
                         [](TorchOperands x, at::Tensor& out) { into(out, x[0], x[1]); });
}

at::Tensor sum_of(const at::Tensor& a, const at::Tensor& b) { return at::add(a, b); }
at::Tensor& sum_into(at::Tensor& out, const at::Tensor& a, const at::Tensor& b) {
  return at::add_out(out, a, b);
}
at::Tensor difference_of(const at::Tensor& a, const at::Tensor& b) { return at::sub(a, b); }
at::Tensor& difference_into(at::Tensor& out, const at::Tensor& a, const at::Tensor& b) {
  return at::sub_out(out, a, b);
}
at::Tensor product_of(const at::Tensor& a, const at::Tensor& b) { return at::mul(a, b); }
at::Tensor& product_into(at::Tensor& out, const at::Tensor& a, const at::Tensor& b) {
  return at::mul_out(out, a, b);
}
at::Tensor quotient_of(const at::Tensor& a, const at::Tensor& b) { return at::div(a, b); }
at::Tensor& quotient_into(at::Tensor& out, const at::Tensor& a, const at::Tensor& b) {
  return at::div_out(out, a, b);
}
at::Tensor power_of(const at::Tensor& a, const at::Tensor& b) { return at::pow(a, b); }
at::Tensor& power_into(at::Tensor& out, const at::Tensor& a, const at::Tensor& b) {
  return at::pow_out(out, a, b);
}
at::Tensor relu_of(const at::Tensor& x) { return at::relu(x); }
at::Tensor& relu_into(at::Tensor& out, const at::Tensor& x) { return at::clamp_min_out(out, x, 0); }
at::Tensor softsign_of(const at::Tensor& x) { return x / (at::abs(x) + 1); }
at::Tensor softplus_of(const at::Tensor& x) { return at::softplus(x); }

TorchOperation quotient(const TorchNode& node) {
  node.need_real(0);
  return of_two<quotient_of, quotient_into>(node);
}

TorchOperation power(const TorchNode& node) {
  node.need_real(0);
  node.need_real(1);
  return of_two<power_of, power_into>(node);
}

TorchOperation gelu(const TorchNode& node) {
  const std::string form = node.text("approximate", "none");
  if (form != "none" && form != "tanh") node.fail("is an approximation that is not done");
  return torch_operation(
      [form](TorchOperands x) { return at::gelu(x[0], form); },
      [form](TorchOperands x, at::Tensor& out) { at::gelu_out(out, x[0], form); });
}

TorchOperation leaky_relu(const TorchNode& node) {
  const double slope = node.real("alpha", 0.01);
  return torch_operation([slope](TorchOperands x) { return at::leaky_relu(x[0], slope); });
}

TorchOperation elu(const TorchNode& node) {
  const double alpha = node.real("alpha", 1);
  return torch_operation([alpha](TorchOperands x) { return at::elu(x[0], alpha); });
}

TorchOperation selu(const TorchNode& node) {
  const double alpha = node.real("alpha", 1.67326319217681884765625);
  const double gamma = node.real("gamma", 1.05070102214813232421875);
  return torch_operation(
      [alpha, gamma](TorchOperands x) { return at::elu(x[0], alpha, gamma, 1); });
}

TorchOperation hard_sigmoid(const TorchNode& node) {
  const double alpha = node.real("alpha", 0.2), beta = node.real("beta", 0.5);
  return torch_operation(
      [alpha, beta](TorchOperands x) { return at::clamp(x[0] * alpha + beta, 0, 1); });
}

TorchOperation swish(const TorchNode& node) {
  const double alpha = node.real("alpha", 1);
  if (alpha == 1) {
    return torch_operation([](TorchOperands x) { return at::silu(x[0]); },
                           [](TorchOperands x, at::Tensor& out) { at::silu_out(out, x[0]); });
  }
  return torch_operation([alpha](TorchOperands x) { return x[0] * at::sigmoid(x[0] * alpha); });
}

TorchOperation p_relu(const TorchNode& node) {
  node.need_real(0);
  need_usual_broadcast(node);
  return torch_operation([](TorchOperands x) { return at::where(x[0].lt(0), x[0] * x[1], x[0]); });
}

/// A limit of Clip, from a constant operand or, in older versions, an attribute.
std::optional<at::Scalar> limit_of(const TorchNode& node, std::size_t operand,
                                   std::string_view name) {
  if (node.is_there(operand)) {
    if (!node.has(operand)) node.fail("has a limit that is computed");
    return node.scalar(operand);
  }
  if (!node.has_attribute(name)) return std::nullopt;
  return node.real(name, 0);
}

TorchOperation clip(const TorchNode& node) {
  node.need_real(0);
  const auto least = limit_of(node, 1, "min"), most = limit_of(node, 2, "max");
  if (!least && !most) return torch_operation([](TorchOperands x) { return x[0].clone(); });
  const auto limit = [](const std::optional<at::Scalar>& from) {
    return from ? c10::optional<at::Scalar>(*from) : c10::nullopt;
  };
  return torch_operation(
      [l = limit(least), m = limit(most)](TorchOperands x) { return at::clamp(x[0], l, m); },
      [l = limit(least), m = limit(most)](TorchOperands x, at::Tensor& out) {
        at::clamp_out(out, x[0], l, m);
      });
}

TorchOperation choice(const TorchNode&) {
  return torch_operation([](TorchOperands x) { return at::where(x[0], x[1], x[2]); });
}

/// Of any number of operands, one after the other.
template <OfTwo function>
TorchOperation of_all(const TorchNode&) {
  return torch_operation([](TorchOperands x) {
    at::Tensor all = x[0];
    for (std::size_t i = 1; i < x.size(); ++i) all = function(all, x[i]);
    return all;
  });
}

at::Tensor is_equal(const at::Tensor& a, const at::Tensor& b) { return at::eq(a, b); }
at::Tensor is_greater(const at::Tensor& a, const at::Tensor& b) { return at::gt(a, b); }
at::Tensor is_less(const at::Tensor& a, const at::Tensor& b) { return at::lt(a, b); }

template <OfTwo function>
TorchOperation compared(const TorchNode& node) {
  need_usual_broadcast(node);
  return torch_operation([](TorchOperands x) { return function(x[0], x[1]); });
}

}  // namespace

TorchEntries torch_pointwise_entries() {
  return {{"Abs", {of_real<at::abs, at::abs_out>, true}},
          {"Add", {of_two<sum_of, sum_into>, true}},
          {"And", {compared<at::logical_and>}},
          {"Ceil", {of_real<at::ceil, at::ceil_out>, true}},
          {"Clip", {clip, true}},
          {"Cos", {of_real<at::cos, at::cos_out>, true}},
          {"Div", {quotient, true}},
          {"Elu", {elu, true}},
          {"Equal", {compared<is_equal>}},
          {"Erf", {of_real<at::erf, at::erf_out>, true}},
          {"Exp", {of_real<at::exp, at::exp_out>, true}},
          {"Floor", {of_real<at::floor, at::floor_out>, true}},
          {"Gelu", {gelu, true}},
          {"Greater", {compared<is_greater>}},
          {"HardSigmoid", {hard_sigmoid, true}},
          {"HardSwish", {of_one<at::hardswish>, true}},
          {"LeakyRelu", {leaky_relu, true}},
          {"Less", {compared<is_less>}},
          {"Log", {of_real<at::log, at::log_out>, true}},
          {"Max", {of_two<at::maximum, at::maximum_out>, true}},
          {"Min", {of_two<at::minimum, at::minimum_out>, true}},
          {"Mish", {of_one<at::mish>, true}},
          {"Mul", {of_two<product_of, product_into>, true}},
          {"Neg", {of_real<at::neg, at::neg_out>, true}},
          {"Not", {of_one<at::logical_not>}},
          {"Or", {compared<at::logical_or>}},
          {"PRelu", {p_relu}},
          {"Pow", {power, true}},
          {"Reciprocal", {of_real<at::reciprocal, at::reciprocal_out>, true}},
          {"Relu", {of_real<relu_of, relu_into>, true}},
          {"Selu", {selu, true}},
          {"Sigmoid", {of_real<at::sigmoid, at::sigmoid_out>, true}},
          {"Sin", {of_real<at::sin, at::sin_out>, true}},
          {"Softplus", {of_one<softplus_of>, true}},
          {"Softsign", {of_one<softsign_of>, true}},
          {"Sqrt", {of_real<at::sqrt, at::sqrt_out>, true}},
          {"Sub", {of_two<difference_of, difference_into>, true}},
          {"Sum", {of_all<sum_of>}},
          {"Swish", {swish, true}},
          {"Tanh", {of_real<at::tanh, at::tanh_out>, true}},
          {"Where", {choice}}};
}

}  // namespace braid
