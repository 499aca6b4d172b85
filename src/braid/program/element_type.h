#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace braid {

/// How one number of a tensor is stored. Unlike Dtype, which says what a number costs, this tells
/// signed whole numbers from unsigned ones.
enum class ElementType : std::uint8_t {
  f64,
  f32,
  f16,
  bf16,
  i64,
  i32,
  i16,
  i8,
  u64,
  u32,
  u16,
  u8,
  boolean,  ///< A byte that is 0 or 1.
};

/// Numbers of 16 bits, which C++20 has no type for.
struct Half {
  std::uint16_t bits = 0;
};
struct BrainHalf {
  std::uint16_t bits = 0;
};

std::size_t bytes_of(ElementType type);
/// "f32", "u8", "boolean" …
std::string_view name_of(ElementType type);
/// f64, f32, f16 and bf16.
bool is_real(ElementType type);
/// u64, u32, u16, u8 and boolean.
bool is_unsigned(ElementType type);
/// The least and greatest whole number of a type that is not real; those of u64 end at 2^63 - 1.
std::int64_t least_of(ElementType type);
std::int64_t greatest_of(ElementType type);

/// Calls `visit(std::type_identity<T>())` with the C++ type of the elements.
template <typename Visit>
decltype(auto) visit_element_type(ElementType type, Visit&& visit) {
  switch (type) {
    case ElementType::f64:
      return visit(std::type_identity<double>());
    case ElementType::f32:
      return visit(std::type_identity<float>());
    case ElementType::f16:
      return visit(std::type_identity<Half>());
    case ElementType::bf16:
      return visit(std::type_identity<BrainHalf>());
    case ElementType::i64:
      return visit(std::type_identity<std::int64_t>());
    case ElementType::i32:
      return visit(std::type_identity<std::int32_t>());
    case ElementType::i16:
      return visit(std::type_identity<std::int16_t>());
    case ElementType::i8:
      return visit(std::type_identity<std::int8_t>());
    case ElementType::u64:
      return visit(std::type_identity<std::uint64_t>());
    case ElementType::u32:
      return visit(std::type_identity<std::uint32_t>());
    case ElementType::u16:
      return visit(std::type_identity<std::uint16_t>());
    case ElementType::u8:
      return visit(std::type_identity<std::uint8_t>());
    case ElementType::boolean:
      break;
  }
  return visit(std::type_identity<bool>());
}

}  // namespace braid
