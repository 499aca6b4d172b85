#include "braid/program/numbers.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

namespace braid {
namespace {

/// The bits of a floating-point number with one sign bit, from IEEE 754, section 3.4.
struct FloatFormat {
  int exponent_bits = 0, fraction_bits = 0;

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  std::uint32_t infinity() const { return ((1U << exponent_bits) - 1U) << fraction_bits; }
};

constexpr FloatFormat half_format{.exponent_bits = 5, .fraction_bits = 10};
constexpr FloatFormat brain_half_format{.exponent_bits = 8, .fraction_bits = 7};

std::uint16_t encoded(double real, const FloatFormat& format) {
  const std::uint32_t sign = std::signbit(real) ? 0x8000U : 0U;
  if (std::isnan(real)) {
    const std::uint32_t quiet = 1U << (format.fraction_bits - 1);
    return static_cast<std::uint16_t>(sign | format.infinity() | quiet);
  }
  const double size = std::abs(real);
  const int least_exponent = 1 - format.bias();
  const int exponent =
      size == 0 || std::isinf(size) ? least_exponent : std::max(std::ilogb(size), least_exponent);
  // In units of the last place; rounding may carry into the next exponent, which encodes rightly.
  const double units = std::nearbyint(std::ldexp(size, format.fraction_bits - exponent));
  const double infinite_from = std::ldexp(2.0, format.fraction_bits);
  if (std::isinf(size) || exponent > format.bias() ||
      (exponent == format.bias() && units >= infinite_from)) {
    return static_cast<std::uint16_t>(sign | format.infinity());
  }
  const auto carried = static_cast<std::uint32_t>(exponent - least_exponent)
                       << format.fraction_bits;
  return static_cast<std::uint16_t>(sign | (carried + static_cast<std::uint32_t>(units)));
}

double decoded(std::uint16_t bits, const FloatFormat& format) {
  const double sign = (bits & 0x8000U) != 0 ? -1.0 : 1.0;
  const std::uint32_t magnitude = bits & 0x7fffU;
  const std::uint32_t fraction = magnitude & ((1U << format.fraction_bits) - 1U);
  const auto exponent = static_cast<int>(magnitude >> format.fraction_bits);
  if (magnitude > format.infinity()) return std::numeric_limits<double>::quiet_NaN();
  if (magnitude == format.infinity()) return sign * std::numeric_limits<double>::infinity();
  const int least_exponent = 1 - format.bias();
  if (exponent == 0) {
    return sign * std::ldexp(static_cast<double>(fraction), least_exponent - format.fraction_bits);
  }
  const double units = static_cast<double>(fraction | (1U << format.fraction_bits));
  return sign * std::ldexp(units, exponent - format.bias() - format.fraction_bits);
}

template <typename Whole>
Whole whole_of(double real) {
  if (std::isnan(real)) return 0;
  // The bounds as doubles may lie one step outside, hence "at or beyond".
  if (real <= static_cast<double>(std::numeric_limits<Whole>::min())) {
    return std::numeric_limits<Whole>::min();
  }
  if (real >= static_cast<double>(std::numeric_limits<Whole>::max())) {
    return std::numeric_limits<Whole>::max();
  }
  return static_cast<Whole>(real);
}

template <typename To, typename From>
To converted(From from) {
  if constexpr (std::is_same_v<To, bool>) {
    if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, BrainHalf>) {
      return real_of(from) != 0;
    } else {
      return from != 0;
    }
  } else if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, BrainHalf>) {
    return converted<To>(real_of(from));
  } else if constexpr (std::is_same_v<To, Half>) {
    return half_of(static_cast<double>(from));
  } else if constexpr (std::is_same_v<To, BrainHalf>) {
    return brain_half_of(static_cast<double>(from));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return whole_of<To>(static_cast<double>(from));
  } else {
    return static_cast<To>(from);
  }
}

}  // namespace

double real_of(Half half) { return decoded(half.bits, half_format); }
double real_of(BrainHalf half) { return decoded(half.bits, brain_half_format); }
Half half_of(double real) { return {encoded(real, half_format)}; }
BrainHalf brain_half_of(double real) { return {encoded(real, brain_half_format)}; }

template <typename Number>
std::vector<Number> numbers_of(const DenseTensor& tensor) {
  return visit_element_type(tensor.type, [&]<typename T>(std::type_identity<T>) {
    const std::span<const T> elements = tensor.as<T>();
    std::vector<Number> numbers(elements.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = converted<Number>(elements[i]);
    return numbers;
  });
}

template <typename Number>
DenseTensor tensor_of(ElementType type, Shape shape, std::span<const Number> numbers) {
  DenseTensor tensor(type, std::move(shape));
  assert(tensor.count() == static_cast<std::int64_t>(numbers.size()));
  visit_element_type(type, [&]<typename T>(std::type_identity<T>) {
    const std::span<T> elements = tensor.as<T>();
    for (std::size_t i = 0; i < numbers.size(); ++i) elements[i] = converted<T>(numbers[i]);
  });
  return tensor;
}

template std::vector<double> numbers_of(const DenseTensor&);
template std::vector<std::int64_t> numbers_of(const DenseTensor&);
template std::vector<std::uint64_t> numbers_of(const DenseTensor&);
template DenseTensor tensor_of(ElementType, Shape, std::span<const double>);
template DenseTensor tensor_of(ElementType, Shape, std::span<const std::int64_t>);
template DenseTensor tensor_of(ElementType, Shape, std::span<const std::uint64_t>);

}  // namespace braid
