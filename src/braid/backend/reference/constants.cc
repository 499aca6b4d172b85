#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <random>
#include <string_view>
#include <variant>

#include <fmt/format.h>

#include "braid/backend/reference/kernel_lists.h"
#include "braid/base/index.h"
#include "braid/program/numbers.h"
#include "braid/program/random_tensor.h"

// Tensors that depend on attributes and shapes alone.

namespace braid {
namespace {

using Tensors = std::vector<DenseTensor>;

Tensors constant(const NodeCall& call) {
  if (call.node().attributes.size() != 1) call.fail("has not exactly one value");
  const AttributeValue& value = call.node().attributes.front().value;
  if (const auto* tensor = std::get_if<std::shared_ptr<const DenseTensor>>(&value)) {
    return {**tensor};
  }
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    return {tensor_of(ElementType::i64, {}, std::vector<std::int64_t>{*integer})};
  }
  if (const auto* real = std::get_if<double>(&value)) {
    return {tensor_of(ElementType::f32, {}, std::vector<double>{*real})};
  }
  if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&value)) {
    return {tensor_of(ElementType::i64, {static_cast<std::int64_t>(integers->size())}, *integers)};
  }
  if (const auto* reals = std::get_if<std::vector<double>>(&value)) {
    return {tensor_of(ElementType::f32, {static_cast<std::int64_t>(reals->size())}, *reals)};
  }
  call.fail("its value is neither a tensor of numbers nor numbers");
}

void check_sizes(const NodeCall& call, const Shape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(count, size, &count) || count > std::int64_t{1} << 40) {
      call.fail("its result would have the shape " + shape_text(shape));
    }
  }
}

Tensors constant_of_shape(const NodeCall& call) {
  call.need_inputs(1, 1);
  const Shape shape = call.integers(0);
  check_sizes(call, shape);
  const DenseTensor* value = call.tensor("value");
  const DenseTensor zero(ElementType::f32, {});
  if (value == nullptr) value = &zero;
  if (value->count() != 1) call.fail("attribute 'value' has not one element");
  return {taken(*value, shape, std::vector<std::int64_t>(at(element_count(shape)), 0))};
}

Tensors shape_kernel(const NodeCall& call) {
  call.need_inputs(1, 1);
  const Shape& in = call.shape(0);
  const auto rank = static_cast<std::int64_t>(in.size());
  const auto clamped = [&](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const std::int64_t start = clamped(call.integer("start", 0));
  const std::int64_t end = std::max(start, clamped(call.integer("end", rank)));
  const Shape sizes(in.begin() + start, in.begin() + end);
  return {tensor_of(ElementType::i64, {end - start}, sizes)};
}

Tensors size_kernel(const NodeCall& call) {
  call.need_inputs(1, 1);
  return {tensor_of(ElementType::i64, {}, std::vector<std::int64_t>{call.input(0).count()})};
}

Tensors eye_like(const NodeCall& call) {
  call.need_inputs(1, 1);
  call.need_rank(0, 2, 2);
  const Shape& in = call.shape(0);
  const std::int64_t diagonal = call.integer("k", 0);
  std::vector<std::int64_t> numbers(at(element_count(in)), 0);
  for (std::int64_t row = 0; row < in[0]; ++row) {
    const std::int64_t column = row + diagonal;
    if (column >= 0 && column < in[1]) numbers[at(row * in[1] + column)] = 1;
  }
  return {tensor_of(call.element_type("dtype", call.type(0)), in, numbers)};
}

template <typename Number>
DenseTensor filled_range(const NodeCall& call, std::int64_t count) {
  check_sizes(call, {count});
  const Number start = numbers_of<Number>(call.input(0)).front();
  const Number step = numbers_of<Number>(call.input(2)).front();
  std::vector<Number> numbers;
  for (std::int64_t i = 0; i < count; ++i) numbers.push_back(start + static_cast<Number>(i) * step);
  return tensor_of(call.type(0), {count}, numbers);
}

Tensors range(const NodeCall& call) {
  call.need_inputs(3, 3);
  const double steps = std::ceil((call.scalar(1) - call.scalar(0)) / call.scalar(2));
  if (!(steps < 0x1.0p40)) call.fail("its step leads nowhere");
  const std::int64_t count = steps > 0 ? static_cast<std::int64_t>(steps) : 0;
  return {is_real(call.type(0)) ? filled_range<double>(call, count)
                                : filled_range<std::int64_t>(call, count)};
}

/// ONNX leaves open which random numbers these are. Here they are the same for the same seed, or
/// where the node has none for the same name.
std::uint64_t seed_of(const NodeCall& call) {
  if (call.has_attribute("seed")) return std::bit_cast<std::uint64_t>(call.real("seed", 0));
  std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a
  for (const char c : call.node().name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  }
  return hash;
}

DenseTensor random_numbers(const NodeCall& call, const Shape& shape, ElementType type) {
  check_sizes(call, shape);
  if (call.operation().starts_with("RandomNormal")) {
    const double mean = call.real("mean", 0);
    std::vector<double> numbers = numbers_of<double>(
        random_tensor(ElementType::f64, shape, seed_of(call), call.real("scale", 1)));
    for (double& each : numbers) each += mean;
    return tensor_of(type, shape, numbers);
  }
  const double low = call.real("low", 0);
  const double high = call.real("high", 1);
  std::mt19937_64 engine(seed_of(call));
  std::vector<double> numbers(at(element_count(shape)));
  for (double& each : numbers) {
    each = low + (high - low) * static_cast<double>(engine() >> 11U) * 0x1.0p-53;
  }
  return tensor_of(type, shape, numbers);
}

Tensors random_kernel(const NodeCall& call) {
  call.need_inputs(0, 0);
  const auto* shape = call.integers("shape");
  if (shape == nullptr) call.fail("attribute 'shape' is missing");
  return {random_numbers(call, *shape, call.element_type("dtype", ElementType::f32))};
}

Tensors random_like(const NodeCall& call) {
  call.need_inputs(1, 1);
  return {random_numbers(call, call.shape(0), call.element_type("dtype", call.type(0)))};
}

constexpr std::array<ReferenceEntry, 10> constant_entries{{
    {"Constant", constant},
    {"ConstantOfShape", constant_of_shape},
    {"EyeLike", eye_like},
    {"RandomNormal", random_kernel},
    {"RandomNormalLike", random_like},
    {"RandomUniform", random_kernel},
    {"RandomUniformLike", random_like},
    {"Range", range},
    {"Shape", shape_kernel},
    {"Size", size_kernel},
}};

}  // namespace

std::span<const ReferenceEntry> constant_kernels() { return constant_entries; }

}  // namespace braid
