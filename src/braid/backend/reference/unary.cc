#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <string>
#include <type_traits>
#include <utility>

#include "braid/backend/reference/kernel_lists.h"
#include "braid/program/numbers.h"

// Functions of one tensor, element by element.

namespace braid {
namespace {

using Tensors = std::vector<DenseTensor>;
using RealFunction = std::function<double(double)>;

/// A kernel that applies the function which `make(call)` returns to real numbers; whole ones are
/// computed as such where the result is a whole number again.
template <auto make>
Tensors real_kernel(const NodeCall& call) {
  call.need_inputs(1, 2);
  std::vector<double> numbers = call.reals(0);
  const RealFunction function = make(call);
  for (double& each : numbers) each = function(each);
  return {tensor_of(call.type(0), call.shape(0), numbers)};
}

/// The same for a function without attributes.
template <double (*function)(double)>
Tensors plain_kernel(const NodeCall& call) {
  return real_kernel<[](const NodeCall&) -> RealFunction { return function; }>(call);
}

/// `Each::of(x)` for reals, signed and unsigned whole numbers.
template <typename Each>
Tensors any_kernel(const NodeCall& call) {
  call.need_inputs(1, 1);
  const auto apply = [&]<typename Number>(Number) -> Tensors {
    std::vector<Number> numbers = numbers_of<Number>(call.input(0));
    for (Number& each : numbers) each = Each::of(each);
    return {tensor_of(call.type(0), call.shape(0), numbers)};
  };
  if (is_real(call.type(0))) return apply(double{});
  if (is_unsigned(call.type(0))) return apply(std::uint64_t{});
  return apply(std::int64_t{});
}

template <typename Number>
Number negated(Number x) {
  if constexpr (std::is_same_v<Number, double>) {
    return -x;
  } else {
    return static_cast<Number>(-static_cast<std::uint64_t>(x));
  }
}

struct Negative {
  template <typename Number>
  static Number of(Number x) {
    return negated(x);
  }
};
struct Magnitude {
  template <typename Number>
  static Number of(Number x) {
    if constexpr (std::is_same_v<Number, double>) return std::abs(x);
    return x < 0 ? negated(x) : x;
  }
};
struct SignOf {
  template <typename Number>
  static Number of(Number x) {
    if (x > 0) return 1;
    if (x < 0) return negated(Number{1});
    return x;
  }
};
struct Rectified {
  template <typename Number>
  static Number of(Number x) {
    return x < 0 ? Number{0} : x;
  }
};

double erf_gelu(double x) { return x / 2 * (1 + std::erf(x / std::numbers::sqrt2)); }

/// The approximation of GeLU (Hendrycks and Gimpel 2016, section 2).
double tanh_gelu(double x) {
  const double scale = std::sqrt(2 / std::numbers::pi);
  return x / 2 * (1 + std::tanh(scale * (x + 0.044715 * x * x * x)));
}

double logistic(double x) { return 1 / (1 + std::exp(-x)); }
double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

RealFunction gelu_function(const NodeCall& call) {
  return call.text("approximate", "none") == "tanh" ? tanh_gelu : erf_gelu;
}

/// Of the contributed operations with a bias as second operand.
Tensors biased_gelu(const NodeCall& call) {
  call.need_inputs(1, 2);
  std::vector<double> numbers = call.reals(0);
  if (call.has(1)) {
    const std::vector<double> bias = call.reals(1);
    if (call.broadcast(call.shape(0), call.shape(1)) != call.shape(0)) {
      call.fail("its bias of the shape " + shape_text(call.shape(1)) + " does not fit");
    }
    const auto places = broadcast_places(call.shape(1), call.shape(0));
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      numbers[i] += bias[static_cast<std::size_t>(places[i])];
    }
  }
  const double steepness = call.real("alpha", 1.702);
  for (double& x : numbers) {
    if (call.operation() == "QuickGelu") {
      x *= logistic(steepness * x);
    } else {
      x = call.operation() == "FastGelu" ? tanh_gelu(x) : erf_gelu(x);
    }
  }
  return {tensor_of(call.type(0), call.shape(0), numbers)};
}

RealFunction celu_function(const NodeCall& call) {
  const double alpha = call.real("alpha", 1);
  return [alpha](double x) { return x >= 0 ? x : alpha * std::expm1(x / alpha); };
}
RealFunction elu_function(const NodeCall& call) {
  const double alpha = call.real("alpha", 1);
  return [alpha](double x) { return x >= 0 ? x : alpha * std::expm1(x); };
}
RealFunction selu_function(const NodeCall& call) {
  // The defaults of ONNX, after Klambauer et al. (2017).
  const double alpha = call.real("alpha", 1.67326319217681884765625);
  const double gamma = call.real("gamma", 1.05070102214813232421875);
  return [alpha, gamma](double x) { return gamma * (x > 0 ? x : alpha * std::expm1(x)); };
}
RealFunction hard_sigmoid_function(const NodeCall& call) {
  const double alpha = call.real("alpha", 0.2);
  const double beta = call.real("beta", 0.5);
  return [alpha, beta](double x) { return std::max(0.0, std::min(1.0, alpha * x + beta)); };
}
RealFunction leaky_function(const NodeCall& call) {
  const double alpha = call.real("alpha", 0.01);
  return [alpha](double x) { return x >= 0 ? x : alpha * x; };
}
RealFunction shrink_function(const NodeCall& call) {
  const double lambda = call.real("lambd", 0.5);
  const double bias = call.real("bias", 0);
  return [lambda, bias](double x) {
    if (x < -lambda) return x + bias;
    return x > lambda ? x - bias : 0.0;
  };
}
RealFunction threshold_function(const NodeCall& call) {
  const double alpha = call.real("alpha", 1);
  return [alpha](double x) { return x > alpha ? x : 0.0; };
}
RealFunction swish_function(const NodeCall& call) {
  const double alpha = call.real("alpha", 1);
  return [alpha](double x) { return x * logistic(alpha * x); };
}

/// Versions before 11 have the bounds as attributes.
template <typename Number>
DenseTensor clipped(const NodeCall& call) {
  Number least = std::numeric_limits<Number>::lowest();
  Number most = std::numeric_limits<Number>::max();
  if (std::is_same_v<Number, double> && call.opset() < 11) {
    least = static_cast<Number>(call.real("min", static_cast<double>(least)));
    most = static_cast<Number>(call.real("max", static_cast<double>(most)));
  }
  for (const std::size_t bound : {1, 2}) {
    if (!call.has(bound)) continue;
    static_cast<void>(call.scalar(bound));
    (bound == 1 ? least : most) = numbers_of<Number>(call.input(bound)).front();
  }
  std::vector<Number> numbers = numbers_of<Number>(call.input(0));
  // Where the bounds cross, the upper one counts; NaN stays.
  for (Number& x : numbers) {
    if (x < least) x = least;
    if (x > most) x = most;
  }
  return tensor_of(call.type(0), call.shape(0), numbers);
}

Tensors clip(const NodeCall& call) {
  call.need_inputs(1, 3);
  if (is_real(call.type(0))) return {clipped<double>(call)};
  if (is_unsigned(call.type(0))) return {clipped<std::uint64_t>(call)};
  return {clipped<std::int64_t>(call)};
}

template <typename Test>
Tensors tested(const NodeCall& call, Test test) {
  call.need_inputs(1, 1);
  std::vector<std::int64_t> results;
  for (const double x : call.reals(0)) results.push_back(test(x) ? 1 : 0);
  return {tensor_of(ElementType::boolean, call.shape(0), results)};
}

Tensors is_nan(const NodeCall& call) {
  return tested(call, [](double x) { return std::isnan(x); });
}

Tensors is_infinite(const NodeCall& call) {
  const bool negative = call.flag("detect_negative", true);
  const bool positive = call.flag("detect_positive", true);
  return tested(call, [&](double x) { return std::isinf(x) && (x > 0 ? positive : negative); });
}

Tensors logical_not(const NodeCall& call) {
  return tested(call, [](double x) { return x == 0; });
}

Tensors bitwise_not(const NodeCall& call) {
  call.need_inputs(1, 1);
  std::vector<std::int64_t> numbers = call.integers(0);
  for (std::int64_t& each : numbers) each = ~each;
  return {tensor_of(call.type(0), call.shape(0), numbers)};
}

Tensors where_kernel(const NodeCall& call) {
  call.need_inputs(3, 3);
  if (call.type(1) != call.type(2)) call.fail("its two values are of different types");
  const Shape out = call.broadcast(call.broadcast(call.shape(0), call.shape(1)), call.shape(2));
  const std::vector<std::int64_t> chosen = call.integers(0);
  const auto condition = broadcast_places(call.shape(0), out);
  const auto yes = broadcast_places(call.shape(1), out);
  auto no = broadcast_places(call.shape(2), out);
  // Both values one after the other, of which each element is one.
  DenseTensor both(call.type(1), {call.input(1).count() + call.input(2).count()});
  std::copy(call.input(1).data.begin(), call.input(1).data.end(), both.data.begin());
  std::copy(call.input(2).data.begin(), call.input(2).data.end(),
            both.data.begin() + static_cast<std::ptrdiff_t>(call.input(1).data.size()));
  for (std::size_t i = 0; i < no.size(); ++i) {
    const bool take_yes = chosen[static_cast<std::size_t>(condition[i])] != 0;
    no[i] = take_yes ? yes[i] : no[i] + call.input(1).count();
  }
  return {taken(both, out, no)};
}

constexpr std::array<ReferenceEntry, 47> unary_entries{{
    {"Abs", any_kernel<Magnitude>},
    {"Acos", plain_kernel<[](double x) { return std::acos(x); }>},
    {"Acosh", plain_kernel<[](double x) { return std::acosh(x); }>},
    {"Asin", plain_kernel<[](double x) { return std::asin(x); }>},
    {"Asinh", plain_kernel<[](double x) { return std::asinh(x); }>},
    {"Atan", plain_kernel<[](double x) { return std::atan(x); }>},
    {"Atanh", plain_kernel<[](double x) { return std::atanh(x); }>},
    {"BiasGelu", biased_gelu},
    {"BitwiseNot", bitwise_not},
    {"Ceil", plain_kernel<[](double x) { return std::ceil(x); }>},
    {"Celu", real_kernel<celu_function>},
    {"Clip", clip},
    {"Cos", plain_kernel<[](double x) { return std::cos(x); }>},
    {"Cosh", plain_kernel<[](double x) { return std::cosh(x); }>},
    {"Elu", real_kernel<elu_function>},
    {"Erf", plain_kernel<[](double x) { return std::erf(x); }>},
    {"Exp", plain_kernel<[](double x) { return std::exp(x); }>},
    {"FastGelu", biased_gelu},
    {"Floor", plain_kernel<[](double x) { return std::floor(x); }>},
    {"Gelu", real_kernel<gelu_function>},
    {"HardSigmoid", real_kernel<hard_sigmoid_function>},
    {"HardSwish",
     plain_kernel<[](double x) { return x * std::max(0.0, std::min(1.0, x / 6 + 0.5)); }>},
    {"IsInf", is_infinite},
    {"IsNaN", is_nan},
    {"LeakyRelu", real_kernel<leaky_function>},
    {"Log", plain_kernel<[](double x) { return std::log(x); }>},
    {"Mish", plain_kernel<[](double x) { return x * std::tanh(softplus(x)); }>},
    {"Neg", any_kernel<Negative>},
    {"Not", logical_not},
    {"QuickGelu", biased_gelu},
    {"Reciprocal", plain_kernel<[](double x) { return 1 / x; }>},
    {"Relu", any_kernel<Rectified>},
    {"Round", plain_kernel<[](double x) { return std::nearbyint(x); }>},
    {"Selu", real_kernel<selu_function>},
    {"Shrink", real_kernel<shrink_function>},
    {"Sigmoid", plain_kernel<logistic>},
    {"Sign", any_kernel<SignOf>},
    {"Sin", plain_kernel<[](double x) { return std::sin(x); }>},
    {"Sinh", plain_kernel<[](double x) { return std::sinh(x); }>},
    {"Softplus", plain_kernel<softplus>},
    {"Softsign", plain_kernel<[](double x) { return x / (1 + std::abs(x)); }>},
    {"Sqrt", plain_kernel<[](double x) { return std::sqrt(x); }>},
    {"Swish", real_kernel<swish_function>},
    {"Tan", plain_kernel<[](double x) { return std::tan(x); }>},
    {"Tanh", plain_kernel<[](double x) { return std::tanh(x); }>},
    {"ThresholdedRelu", real_kernel<threshold_function>},
    {"Where", where_kernel},
}};

}  // namespace

std::span<const ReferenceEntry> unary_kernels() { return unary_entries; }

}  // namespace braid
