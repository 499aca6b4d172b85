#include "braid/frontend/onnx_types.h"

#include <array>
#include <utility>

namespace braid {
namespace {

constexpr std::array<std::pair<OnnxType, ElementType>, 13> element_types = {{
    {OnnxType::f64, ElementType::f64},
    {OnnxType::f32, ElementType::f32},
    {OnnxType::f16, ElementType::f16},
    {OnnxType::bf16, ElementType::bf16},
    {OnnxType::i64, ElementType::i64},
    {OnnxType::i32, ElementType::i32},
    {OnnxType::i16, ElementType::i16},
    {OnnxType::i8, ElementType::i8},
    {OnnxType::u64, ElementType::u64},
    {OnnxType::u32, ElementType::u32},
    {OnnxType::u16, ElementType::u16},
    {OnnxType::u8, ElementType::u8},
    {OnnxType::boolean, ElementType::boolean},
}};

}  // namespace

int bits_of(OnnxType type) {
  switch (type) {
    case OnnxType::complex128:
      return 128;
    case OnnxType::i64:
    case OnnxType::u64:
    case OnnxType::f64:
    case OnnxType::complex64:
      return 64;
    case OnnxType::f32:
    case OnnxType::i32:
    case OnnxType::u32:
      return 32;
    case OnnxType::f16:
    case OnnxType::bf16:
    case OnnxType::i16:
    case OnnxType::u16:
      return 16;
    case OnnxType::u4:
    case OnnxType::i4:
    case OnnxType::f4:
      return 4;
    case OnnxType::undefined:
    case OnnxType::string:
      return 0;
    case OnnxType::u8:
    case OnnxType::i8:
    case OnnxType::boolean:
    case OnnxType::f8_last:
      break;
  }
  const auto number = static_cast<std::int32_t>(type);
  return number > 0 && number < 24 ? 8 : 0;
}

bool is_integer(OnnxType type) {
  switch (type) {
    case OnnxType::u8:
    case OnnxType::i8:
    case OnnxType::u16:
    case OnnxType::i16:
    case OnnxType::i32:
    case OnnxType::i64:
    case OnnxType::boolean:
    case OnnxType::u32:
    case OnnxType::u64:
    case OnnxType::u4:
    case OnnxType::i4:
      return true;
    default:
      return false;
  }
}

bool is_real(OnnxType type) {
  return bits_of(type) > 0 && !is_integer(type) && type != OnnxType::complex64 &&
         type != OnnxType::complex128;
}

std::optional<Dtype> dtype_of(OnnxType type) {
  switch (type) {
    case OnnxType::f64:
      return Dtype::f64;
    case OnnxType::f32:
      return Dtype::f32;
    case OnnxType::f16:
      return Dtype::f16;
    case OnnxType::bf16:
      return Dtype::bf16;
    case OnnxType::f4:
      return Dtype::f4;
    case OnnxType::i64:
    case OnnxType::u64:
      return Dtype::i64;
    case OnnxType::i32:
    case OnnxType::u32:
      return Dtype::i32;
    case OnnxType::i16:
    case OnnxType::u16:
      return Dtype::i16;
    case OnnxType::i8:
    case OnnxType::u8:
      return Dtype::i8;
    case OnnxType::boolean:
      return Dtype::boolean;
    default:
      break;
  }
  const auto number = static_cast<std::int32_t>(type);
  const bool is_f8 = number > static_cast<std::int32_t>(OnnxType::bf16) &&
                     number <= static_cast<std::int32_t>(OnnxType::f8_last);
  return is_f8 ? std::optional(Dtype::f8) : std::nullopt;
}

std::optional<ElementType> element_type_of(OnnxType type) {
  for (const auto& [onnx, element] : element_types) {
    if (onnx == type) return element;
  }
  return std::nullopt;
}

OnnxType onnx_type_of(ElementType type) {
  for (const auto& [onnx, element] : element_types) {
    if (element == type) return onnx;
  }
  return OnnxType::undefined;
}

bool is_weight(OnnxType type, std::size_t rank) {
  if (is_real(type)) return rank >= 1;
  return (type == OnnxType::i8 || type == OnnxType::u8) && rank >= 2;
}

}  // namespace braid
