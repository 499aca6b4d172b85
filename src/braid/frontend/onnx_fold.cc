#include "braid/frontend/onnx_fold.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "braid/frontend/onnx_types.h"

namespace braid {
namespace {

using Integers = std::vector<std::int64_t>;
using Reals = std::vector<double>;
using Dims = OnnxNodeView::Dims;

std::optional<std::int64_t> integer_result(std::string_view name, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (name == "Add")
    return __builtin_add_overflow(a, b, &result) ? std::nullopt : std::optional(result);
  if (name == "Sub")
    return __builtin_sub_overflow(a, b, &result) ? std::nullopt : std::optional(result);
  if (name == "Mul")
    return __builtin_mul_overflow(a, b, &result) ? std::nullopt : std::optional(result);
  const bool divides = b != 0 && !(b == -1 && a == std::numeric_limits<std::int64_t>::min());
  if (name == "Div") return divides ? std::optional(a / b) : std::nullopt;
  if (name == "Mod") {
    if (!divides) return std::nullopt;
    const std::int64_t rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  }
  if (name == "Max") return std::max(a, b);
  if (name == "Min") return std::min(a, b);
  if (name == "Equal") return a == b ? 1 : 0;
  if (name == "Greater") return a > b ? 1 : 0;
  if (name == "GreaterOrEqual") return a >= b ? 1 : 0;
  if (name == "Less") return a < b ? 1 : 0;
  if (name == "LessOrEqual") return a <= b ? 1 : 0;
  if (name == "And") return a != 0 && b != 0 ? 1 : 0;
  if (name == "Or") return a != 0 || b != 0 ? 1 : 0;
  return std::nullopt;
}

std::optional<double> real_result(std::string_view name, double a, double b) {
  if (name == "Add") return a + b;
  if (name == "Sub") return a - b;
  if (name == "Mul") return a * b;
  if (name == "Div") return a / b;
  if (name == "Max") return std::max(a, b);
  if (name == "Min") return std::min(a, b);
  if (name == "Pow") return std::pow(a, b);
  return std::nullopt;
}

std::optional<std::int64_t> integer_result(std::string_view name, std::int64_t a) {
  if (name == "Not") return a == 0 ? 1 : 0;
  if (a == std::numeric_limits<std::int64_t>::min()) return std::nullopt;
  if (name == "Neg") return -a;
  if (name == "Abs") return a < 0 ? -a : a;
  return std::nullopt;
}

std::optional<double> real_result(std::string_view name, double a) {
  if (name == "Neg") return -a;
  if (name == "Abs") return std::abs(a);
  if (name == "Floor") return std::floor(a);
  if (name == "Ceil") return std::ceil(a);
  if (name == "Sqrt") return std::sqrt(a);
  return std::nullopt;
}

/// Where in an operand of shape `dims` the element `at` of the shape `out` comes from.
std::size_t place_in(const Dims& dims, const Dims& out, std::size_t at) {
  std::size_t place = 0;
  std::size_t stride = 1;
  for (std::size_t d = 0; d < out.size(); ++d) {
    const std::size_t from_end = out.size() - 1 - d;
    const auto size = static_cast<std::size_t>(out[from_end]);
    const std::size_t index = at % size;
    at /= size;
    if (d >= dims.size()) continue;
    const auto own = static_cast<std::size_t>(dims[dims.size() - 1 - d]);
    if (own > 1) place += index * stride;
    stride *= own;
  }
  return place;
}

template <typename Element>
const std::vector<Element>* values_of(const OnnxNodeView& node, std::size_t input) {
  const OnnxValue& value = node.input(input);
  return value.values ? std::get_if<std::vector<Element>>(value.values.get()) : nullptr;
}

template <typename Element>
std::optional<Element> one(const OnnxNodeView& node, std::size_t operand, const Dims& out,
                           std::size_t at) {
  const auto* values = values_of<Element>(node, operand);
  if (values == nullptr) return std::nullopt;
  // Old versions line operands up otherwise.
  const std::size_t place = place_in(node.dims(operand), out, at);
  if (place >= values->size()) return std::nullopt;
  return (*values)[place];
}

template <typename Element>
std::optional<Element> result_at(const OnnxNodeView& node, const Dims& out, std::size_t at) {
  const auto first = one<Element>(node, 0, out, at);
  if (!first) return std::nullopt;
  if (node.input_count() == 1) {
    if constexpr (std::is_same_v<Element, double>) return real_result(node.operation(), *first);
    if constexpr (!std::is_same_v<Element, double>) return integer_result(node.operation(), *first);
  }
  std::optional<Element> result = first;
  for (std::size_t i = 1; i < node.input_count() && result; ++i) {
    const auto next = one<Element>(node, i, out, at);
    if (!next) return std::nullopt;
    if constexpr (std::is_same_v<Element, double>) {
      result = real_result(node.operation(), *result, *next);
    } else {
      result = integer_result(node.operation(), *result, *next);
    }
  }
  return result;
}

template <typename Element>
void fold_arithmetic(OnnxNodeView& node, const Dims& out, std::size_t count) {
  std::vector<Element> values(count);
  for (std::size_t at = 0; at < count; ++at) {
    const auto result = result_at<Element>(node, out, at);
    if (!result) return;
    values[at] = *result;
  }
  node.set_values(0, std::move(values));
}

template <typename Element>
void fold_where(OnnxNodeView& node, const Dims& out, std::size_t count) {
  std::vector<Element> values(count);
  for (std::size_t at = 0; at < count; ++at) {
    const auto condition = one<std::int64_t>(node, 0, out, at);
    if (!condition) return;
    const auto chosen = one<Element>(node, *condition != 0 ? 1 : 2, out, at);
    if (!chosen) return;
    values[at] = *chosen;
  }
  node.set_values(0, std::move(values));
}

void fold_cast(OnnxNodeView& node) {
  const OnnxValue& from = node.input(0);
  const bool to_boolean = node.results().front().type == OnnxType::boolean;
  const bool to_integers = is_integer(node.results().front().type);
  if (const auto* integers = std::get_if<Integers>(from.values.get())) {
    if (!to_integers) return node.set_values(0, Reals(integers->begin(), integers->end()));
    Integers values = *integers;
    if (to_boolean) {
      for (std::int64_t& value : values) value = value != 0 ? 1 : 0;
    }
    return node.set_values(0, std::move(values));
  }
  const Reals& reals = std::get<Reals>(*from.values);
  if (!to_integers) return node.set_values(0, reals);
  Integers values;
  constexpr double most = 9e18;
  for (const double value : reals) {
    if (!(std::abs(value) < most)) return;
    const auto whole = static_cast<std::int64_t>(value);
    values.push_back(!to_boolean ? whole : value != 0 ? 1 : 0);
  }
  node.set_values(0, std::move(values));
}

}  // namespace

std::vector<std::int64_t> strides_of(const std::vector<std::int64_t>& dims) {
  std::vector<std::int64_t> strides(dims.size(), 1);
  for (std::size_t d = dims.size(); d-- > 1;) strides[d - 1] = strides[d] * dims[d];
  return strides;
}

bool is_small(const OnnxNodeView& node) {
  std::int64_t count = 1;
  for (const std::int64_t size : node.results().front().dims) {
    if (size > most_folded) return false;
    count *= size;
    if (count > most_folded) return false;
  }
  return true;
}

void fold_pointwise(OnnxNodeView& node) {
  if (!is_small(node)) return;
  const Dims out = node.results().front().dims;
  std::int64_t count = 1;
  for (const std::int64_t size : out) count *= size;
  for (std::size_t i = 0; i < node.input_count(); ++i) {
    if (!node.has(i) || !node.input(i).values) return;
  }
  const auto size = static_cast<std::size_t>(count);
  if (node.operation() == "Cast") return fold_cast(node);
  if (node.operation() == "Where") {
    if (values_of<std::int64_t>(node, 1) != nullptr) {
      fold_where<std::int64_t>(node, out, size);
    } else {
      fold_where<double>(node, out, size);
    }
    return;
  }
  if (values_of<std::int64_t>(node, 0) != nullptr) {
    fold_arithmetic<std::int64_t>(node, out, size);
  } else {
    fold_arithmetic<double>(node, out, size);
  }
}

}  // namespace braid
