#include "braid/frontend/onnx_types.h"

namespace braid {

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
  switch (type) {
    case OnnxType::f64:
      return ElementType::f64;
    case OnnxType::f32:
      return ElementType::f32;
    case OnnxType::f16:
      return ElementType::f16;
    case OnnxType::bf16:
      return ElementType::bf16;
    case OnnxType::i64:
      return ElementType::i64;
    case OnnxType::i32:
      return ElementType::i32;
    case OnnxType::i16:
      return ElementType::i16;
    case OnnxType::i8:
      return ElementType::i8;
    case OnnxType::u64:
      return ElementType::u64;
    case OnnxType::u32:
      return ElementType::u32;
    case OnnxType::u16:
      return ElementType::u16;
    case OnnxType::u8:
      return ElementType::u8;
    case OnnxType::boolean:
      return ElementType::boolean;
    default:
      return std::nullopt;
  }
}

bool is_weight(OnnxType type, std::size_t rank) {
  if (is_real(type)) return rank >= 1;
  return (type == OnnxType::i8 || type == OnnxType::u8) && rank >= 2;
}

}  // namespace braid
