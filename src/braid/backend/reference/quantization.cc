#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "braid/backend/reference/kernel_lists.h"
#include "braid/program/numbers.h"

// Changes of the number format, quantization among them, and dropout.

namespace braid {
namespace {

using Tensors = std::vector<DenseTensor>;

DenseTensor cast_to(const DenseTensor& tensor, ElementType to) {
  if (is_real(tensor.type)) return tensor_of(to, tensor.shape, numbers_of<double>(tensor));
  if (is_unsigned(tensor.type)) {
    return tensor_of(to, tensor.shape, numbers_of<std::uint64_t>(tensor));
  }
  return tensor_of(to, tensor.shape, numbers_of<std::int64_t>(tensor));
}

Tensors cast_kernel(const NodeCall& call) {
  call.need_inputs(1, 1);
  if (!call.has_attribute("to")) call.fail("attribute 'to' is missing");
  return {cast_to(call.input(0), call.element_type("to", ElementType::f32))};
}

Tensors cast_like(const NodeCall& call) {
  call.need_inputs(2, 2);
  return {cast_to(call.input(0), call.type(1))};
}

/// For each element of operand 0 the place of its scale in operand 1: one for all, or one for each
/// index along `axis`.
std::vector<std::int64_t> scale_places(const NodeCall& call) {
  const Shape& in = call.shape(0);
  if (call.input(1).count() == 1)
    return std::vector<std::int64_t>(static_cast<std::size_t>(call.input(0).count()), 0);
  const std::size_t axis = call.axis(call.integer("axis", 1), in.size());
  if (call.rank(1) != 1 || call.shape(1)[0] != in[axis]) {
    call.fail(fmt::format("scales of the shape {} do not fit {} along axis {}",
                          shape_text(call.shape(1)), shape_text(in), axis),
              "scales of blocks are not supported");
  }
  Shape strides(in.size(), 0);
  strides[axis] = 1;
  return strided_places(in, strides);
}

std::vector<double> zero_points(const NodeCall& call) {
  if (!call.has(2)) return std::vector<double>(static_cast<std::size_t>(call.input(1).count()), 0);
  if (call.input(2).count() != call.input(1).count()) call.fail("scales and zero points differ");
  return call.reals(2);
}

double saturated(double number, ElementType type) {
  return std::clamp(number, static_cast<double>(least_of(type)),
                    static_cast<double>(greatest_of(type)));
}

/// number / scale to the nearest whole number. The quotient is rounded to f32 before, as runtimes
/// that compute in f32 do: of ties, such as 0.5 / 0.019607844, the last bit decides.
double whole_quotient(double number, double scale) {
  return std::nearbyint(static_cast<double>(static_cast<float>(number / scale)));
}

Tensors quantize_linear(const NodeCall& call) {
  call.need_inputs(2, 3);
  const ElementType to =
      call.has(2) ? call.type(2) : call.element_type("output_dtype", ElementType::u8);
  if (is_real(to)) call.fail("quantizes to real numbers, which is not supported");
  const std::vector<double> scales = call.reals(1);
  const std::vector<double> zeros = zero_points(call);
  const auto places = scale_places(call);
  std::vector<double> numbers = call.reals(0);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto place = static_cast<std::size_t>(places[i]);
    numbers[i] = saturated(whole_quotient(numbers[i], scales[place]) + zeros[place], to);
  }
  return {tensor_of(to, call.shape(0), numbers)};
}

Tensors dequantize_linear(const NodeCall& call) {
  call.need_inputs(2, 3);
  const std::vector<double> scales = call.reals(1);
  const std::vector<double> zeros = zero_points(call);
  const auto places = scale_places(call);
  std::vector<double> numbers = call.reals(0);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto place = static_cast<std::size_t>(places[i]);
    numbers[i] = (numbers[i] - zeros[place]) * scales[place];
  }
  return {tensor_of(call.type(1), call.shape(0), numbers)};
}

/// To bytes whose range holds all numbers and zero. The scale is rounded to f32 before it is used,
/// as ONNX's definition computes in f32.
Tensors dynamic_quantize_linear(const NodeCall& call) {
  call.need_inputs(1, 1);
  std::vector<double> numbers = call.reals(0);
  double least = 0, most = 0;
  for (const double each : numbers) {
    least = std::min(least, each);
    most = std::max(most, each);
  }
  constexpr double levels = 255;
  const double range = (most - least) / levels;
  const double scale = static_cast<double>(static_cast<float>(range > 0 ? range : 1));
  const double zero = saturated(whole_quotient(-least, scale), ElementType::u8);
  for (double& each : numbers) {
    each = saturated(whole_quotient(each, scale) + zero, ElementType::u8);
  }
  return {tensor_of(ElementType::u8, call.shape(0), numbers),
          tensor_of(ElementType::f32, {}, std::vector<double>{scale}),
          tensor_of(ElementType::u8, {}, std::vector<double>{zero})};
}

/// Programs are for inference: nothing is dropped.
Tensors dropout(const NodeCall& call) {
  call.need_inputs(1, 3);
  const double ratio = call.has(1) ? call.scalar(1) : call.real("ratio", 0.5);
  const bool training = call.has(2) && call.scalar(2) != 0;
  if (training && ratio != 0)
    call.fail("drops numbers at random", "export the model for inference");
  const ElementType mask = call.opset() < 10 ? call.type(0) : ElementType::boolean;
  const std::vector<double> kept(static_cast<std::size_t>(call.input(0).count()), 1);
  return {call.input(0), tensor_of(mask, call.shape(0), kept)};
}

constexpr std::array<ReferenceEntry, 6> quantization_entries{{
    {"Cast", cast_kernel},
    {"CastLike", cast_like},
    {"DequantizeLinear", dequantize_linear},
    {"Dropout", dropout},
    {"DynamicQuantizeLinear", dynamic_quantize_linear},
    {"QuantizeLinear", quantize_linear},
}};

}  // namespace

std::span<const ReferenceEntry> quantization_kernels() { return quantization_entries; }

}  // namespace braid
