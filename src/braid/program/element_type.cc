#include "braid/program/element_type.h"

#include <limits>

namespace braid {

std::size_t bytes_of(ElementType type) {
  return visit_element_type(type, []<typename T>(std::type_identity<T>) { return sizeof(T); });
}

std::string_view name_of(ElementType type) {
  switch (type) {
    case ElementType::f64:
      return "f64";
    case ElementType::f32:
      return "f32";
    case ElementType::f16:
      return "f16";
    case ElementType::bf16:
      return "bf16";
    case ElementType::i64:
      return "i64";
    case ElementType::i32:
      return "i32";
    case ElementType::i16:
      return "i16";
    case ElementType::i8:
      return "i8";
    case ElementType::u64:
      return "u64";
    case ElementType::u32:
      return "u32";
    case ElementType::u16:
      return "u16";
    case ElementType::u8:
      return "u8";
    case ElementType::boolean:
      break;
  }
  return "boolean";
}

bool is_real(ElementType type) {
  return type == ElementType::f64 || type == ElementType::f32 || type == ElementType::f16 ||
         type == ElementType::bf16;
}

bool is_unsigned(ElementType type) {
  return type == ElementType::u64 || type == ElementType::u32 || type == ElementType::u16 ||
         type == ElementType::u8 || type == ElementType::boolean;
}

std::int64_t least_of(ElementType type) {
  return visit_element_type(type, []<typename T>(std::type_identity<T>) -> std::int64_t {
    if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
      return std::numeric_limits<T>::min();
    }
    return 0;
  });
}

std::int64_t greatest_of(ElementType type) {
  return visit_element_type(type, []<typename T>(std::type_identity<T>) -> std::int64_t {
    if constexpr (std::is_integral_v<T> && sizeof(T) < sizeof(std::int64_t)) {
      return std::numeric_limits<T>::max();
    }
    return std::numeric_limits<std::int64_t>::max();
  });
}

}  // namespace braid
