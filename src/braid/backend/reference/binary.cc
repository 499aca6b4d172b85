#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "braid/backend/reference/kernel_lists.h"
#include "braid/program/numbers.h"

// Functions of two tensors and more that are broadcast against each other.

namespace braid {
namespace {

using Tensors = std::vector<DenseTensor>;

/// Each element of operand `i` where it is broadcast to `out`. Before version 7 the attribute
/// `axis` said with which dimension of the first operand the second one's first lines up; PRelu's
/// slope had one number for each channel.
template <typename Number>
std::vector<Number> spread(const NodeCall& call, std::size_t i, const Shape& out) {
  Shape in = call.shape(i);
  const bool by_channel = call.operation() == "PRelu" && call.opset() < 7 && in.size() == 1;
  if (i == 1 && call.opset() < 7 && (call.flag("broadcast", false) || by_channel)) {
    const auto last = static_cast<std::int64_t>(out.size() - in.size());
    const auto lined_up =
        by_channel ? std::size_t{1} : call.axis(call.integer("axis", last), out.size() + 1);
    if (lined_up + in.size() > out.size()) {
      call.fail(fmt::format("{} does not fit {} from axis {}", shape_text(in), shape_text(out),
                            lined_up));
    }
    in.resize(out.size() - lined_up, 1);
  }
  if (call.broadcast(in, out) != out) {
    call.fail(fmt::format("{} cannot be broadcast to {}", shape_text(in), shape_text(out)));
  }
  std::vector<Number> numbers = numbers_of<Number>(call.input(i));
  if (in == out) return numbers;
  std::vector<Number> result;
  result.reserve(static_cast<std::size_t>(element_count(out)));
  for (const std::int64_t place : broadcast_places(in, out)) {
    result.push_back(numbers[static_cast<std::size_t>(place)]);
  }
  return result;
}

Shape result_shape(const NodeCall& call) {
  const bool by_channel = call.operation() == "PRelu" && call.opset() < 9;
  if (by_channel || (call.opset() < 7 && call.flag("broadcast", false))) return call.shape(0);
  Shape out = call.shape(0);
  for (std::size_t i = 1; i < call.input_count(); ++i) out = call.broadcast(out, call.shape(i));
  return out;
}

/// `combine` over all operands from the left.
template <typename Number, typename Combine>
std::vector<Number> combined(const NodeCall& call, const Shape& out, Combine combine) {
  std::vector<Number> result = spread<Number>(call, 0, out);
  for (std::size_t i = 1; i < call.input_count(); ++i) {
    const std::vector<Number> next = spread<Number>(call, i, out);
    for (std::size_t e = 0; e < result.size(); ++e) result[e] = combine(result[e], next[e]);
  }
  return result;
}

/// Arithmetic in the three kinds of numbers; the result has the first operand's type.
template <typename Combine>
Tensors arithmetic(const NodeCall& call) {
  const Shape out = result_shape(call);
  const auto apply = [&]<typename Number>(Number) -> Tensors {
    return {
        tensor_of(call.type(0), out, combined<Number>(call, out, Combine::template of<Number>))};
  };
  if (is_real(call.type(0))) return apply(double{});
  if (is_unsigned(call.type(0))) return apply(std::uint64_t{});
  return apply(std::int64_t{});
}

template <typename Combine>
Tensors two_operands(const NodeCall& call) {
  call.need_inputs(2, 2);
  return arithmetic<Combine>(call);
}

template <typename Combine>
Tensors any_operands(const NodeCall& call) {
  call.need_inputs(1, std::size_t{1} << 20U);
  for (std::size_t i = 0; i < call.input_count(); ++i) static_cast<void>(call.input(i));
  return arithmetic<Combine>(call);
}

/// Wraps around where whole numbers overflow.
struct Plus {
  template <typename Number>
  static Number of(Number a, Number b) {
    if constexpr (std::is_same_v<Number, double>) return a + b;
    return static_cast<Number>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  }
};
struct Minus {
  template <typename Number>
  static Number of(Number a, Number b) {
    if constexpr (std::is_same_v<Number, double>) return a - b;
    return static_cast<Number>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
  }
};
struct Times {
  template <typename Number>
  static Number of(Number a, Number b) {
    if constexpr (std::is_same_v<Number, double>) return a * b;
    return static_cast<Number>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  }
};
/// Whole numbers are cut off towards zero. Precondition: no whole divisor is 0.
struct Quotient {
  template <typename Number>
  static Number of(Number a, Number b) {
    if constexpr (std::is_same_v<Number, std::int64_t>) {
      if (b == -1) return static_cast<Number>(-static_cast<std::uint64_t>(a));
    }
    return a / b;
  }
};
/// NaN where one is, as NumPy has it.
struct Greater {
  template <typename Number>
  static Number of(Number a, Number b) {
    if constexpr (std::is_same_v<Number, double>) {
      if (std::isnan(a) || std::isnan(b)) return a + b;
    }
    return a < b ? b : a;
  }
};
struct Lesser {
  template <typename Number>
  static Number of(Number a, Number b) {
    if constexpr (std::is_same_v<Number, double>) {
      if (std::isnan(a) || std::isnan(b)) return a + b;
    }
    return b < a ? b : a;
  }
};
/// With the sign of the dividend, as in C.
struct Remainder {
  template <typename Number>
  static Number of(Number a, Number b) {
    if constexpr (std::is_same_v<Number, double>) {
      return std::fmod(a, b);
    } else if constexpr (std::is_same_v<Number, std::int64_t>) {
      return b == -1 ? 0 : a % b;
    } else {
      return a % b;
    }
  }
};
/// With the sign of the divisor, as in Python.
struct Modulus {
  template <typename Number>
  static Number of(Number a, Number b) {
    const Number rest = Remainder::of(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  }
};
struct LeftShift {
  template <typename Number>
  static Number of(Number a, Number b) {
    const auto bits = static_cast<std::uint64_t>(b);
    return bits > 63 ? Number{0} : static_cast<Number>(static_cast<std::uint64_t>(a) << bits);
  }
};
struct RightShift {
  template <typename Number>
  static Number of(Number a, Number b) {
    const auto bits = static_cast<std::uint64_t>(b);
    return bits > 63 ? Number{0} : static_cast<Number>(static_cast<std::uint64_t>(a) >> bits);
  }
};
struct BitAnd {
  template <typename Number>
  static Number of(Number a, Number b) {
    return static_cast<Number>(static_cast<std::uint64_t>(a) & static_cast<std::uint64_t>(b));
  }
};
struct BitOr {
  template <typename Number>
  static Number of(Number a, Number b) {
    return static_cast<Number>(static_cast<std::uint64_t>(a) | static_cast<std::uint64_t>(b));
  }
};
struct BitXor {
  template <typename Number>
  static Number of(Number a, Number b) {
    return static_cast<Number>(static_cast<std::uint64_t>(a) ^ static_cast<std::uint64_t>(b));
  }
};

void check_divisor(const NodeCall& call) {
  call.need_inputs(2, 2);
  if (is_real(call.type(0))) return;
  for (const std::int64_t each : call.integers(1)) {
    if (each == 0) call.fail("divides a whole number by zero");
  }
}

Tensors divide(const NodeCall& call) {
  check_divisor(call);
  return arithmetic<Quotient>(call);
}

Tensors modulo(const NodeCall& call) {
  check_divisor(call);
  if (is_real(call.type(0)) || call.flag("fmod", false)) return arithmetic<Remainder>(call);
  return arithmetic<Modulus>(call);
}

Tensors bit_shift(const NodeCall& call) {
  call.need_inputs(2, 2);
  if (is_real(call.type(0))) call.fail("shifts real numbers");
  const std::string direction = call.text("direction", "");
  if (direction == "LEFT") return arithmetic<LeftShift>(call);
  if (direction == "RIGHT") return arithmetic<RightShift>(call);
  call.fail("its direction is neither LEFT nor RIGHT");
}

Tensors mean_of_all(const NodeCall& call) {
  call.need_inputs(1, std::size_t{1} << 20U);
  const Shape out = result_shape(call);
  std::vector<double> sum = combined<double>(call, out, Plus::of<double>);
  for (double& each : sum) each /= static_cast<double>(call.input_count());
  return {tensor_of(call.type(0), out, sum)};
}

std::int64_t whole_power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) {
    if (base == 1) return 1;
    if (base == -1) return exponent % 2 == 0 ? 1 : -1;
    return 0;
  }
  std::int64_t power = 1;
  for (auto rest = static_cast<std::uint64_t>(exponent); rest > 0; rest >>= 1U) {
    if ((rest & 1U) != 0) power = Times::of(power, base);
    base = Times::of(base, base);
  }
  return power;
}

Tensors power(const NodeCall& call) {
  call.need_inputs(2, 2);
  const Shape out = result_shape(call);
  if (!is_real(call.type(0)) && !is_real(call.type(1))) {
    return {tensor_of(call.type(0), out, combined<std::int64_t>(call, out, whole_power))};
  }
  const auto real_power = [](double a, double b) { return std::pow(a, b); };
  return {tensor_of(call.type(0), out, combined<double>(call, out, real_power))};
}

Tensors slope(const NodeCall& call) {
  call.need_inputs(2, 2);
  const Shape out = result_shape(call);
  const auto leak = []<typename Number>(Number x, Number by) {
    return x < 0 ? Times::of(x, by) : x;
  };
  if (is_real(call.type(0))) {
    return {tensor_of(call.type(0), out, combined<double>(call, out, leak))};
  }
  if (is_unsigned(call.type(0))) {
    return {tensor_of(call.type(0), out, combined<std::uint64_t>(call, out, leak))};
  }
  return {tensor_of(call.type(0), out, combined<std::int64_t>(call, out, leak))};
}

template <typename Test>
Tensors comparison(const NodeCall& call) {
  call.need_inputs(2, 2);
  const Shape out = result_shape(call);
  const auto apply = [&]<typename Number>(Number) -> Tensors {
    const auto test = [](Number a, Number b) { return static_cast<Number>(Test()(a, b)); };
    return {tensor_of(ElementType::boolean, out, combined<Number>(call, out, test))};
  };
  if (is_real(call.type(0))) return apply(double{});
  if (is_unsigned(call.type(0))) return apply(std::uint64_t{});
  return apply(std::int64_t{});
}

constexpr std::array<ReferenceEntry, 23> binary_entries{{
    {"Add", two_operands<Plus>},
    {"And", two_operands<BitAnd>},
    {"BitShift", bit_shift},
    {"BitwiseAnd", two_operands<BitAnd>},
    {"BitwiseOr", two_operands<BitOr>},
    {"BitwiseXor", two_operands<BitXor>},
    {"Div", divide},
    {"Equal", comparison<std::equal_to<>>},
    {"Greater", comparison<std::greater<>>},
    {"GreaterOrEqual", comparison<std::greater_equal<>>},
    {"Less", comparison<std::less<>>},
    {"LessOrEqual", comparison<std::less_equal<>>},
    {"Max", any_operands<Greater>},
    {"Mean", mean_of_all},
    {"Min", any_operands<Lesser>},
    {"Mod", modulo},
    {"Mul", two_operands<Times>},
    {"Or", two_operands<BitOr>},
    {"PRelu", slope},
    {"Pow", power},
    {"Sub", two_operands<Minus>},
    {"Sum", any_operands<Plus>},
    {"Xor", two_operands<BitXor>},
}};

}  // namespace

std::span<const ReferenceEntry> binary_kernels() { return binary_entries; }

}  // namespace braid
