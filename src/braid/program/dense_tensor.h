#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "braid/program/element_type.h"
#include "braid/program/shape.h"

namespace braid {

/// Memory for tensors as vector units like it: it begins at a multiple of a cache line, and some
/// bytes behind its end may be read.
template <typename T>
struct TensorAllocator {
  using value_type = T;
  static constexpr std::size_t alignment_bytes = 64;
  static constexpr std::size_t slack_bytes = 64;

  TensorAllocator() = default;
  template <typename Other>
  explicit TensorAllocator(const TensorAllocator<Other>&) {}

  T* allocate(std::size_t count) {
    return static_cast<T*>(
        ::operator new (count * sizeof(T) + slack_bytes, std::align_val_t{alignment_bytes}));
  }
  void deallocate(T* at, std::size_t) { ::operator delete (at, std::align_val_t{alignment_bytes}); }
  friend bool operator==(const TensorAllocator&, const TensorAllocator&) { return true; }
};

using TensorBytes = std::vector<std::byte, TensorAllocator<std::byte>>;

/// A tensor with its numbers: row-major and without gaps. A plain value; copies copy the numbers.
///
///   DenseTensor tensor(ElementType::f32, {2, 3});
///   tensor.as<float>()[5] = 1;          // The last element.
///   numbers_of<double>(tensor).back();  // 1 (numbers.h)
struct DenseTensor {
  ElementType type = ElementType::f32;
  Shape shape;
  TensorBytes data;

  DenseTensor() = default;
  /// Of zeros. Precondition: no size is negative.
  DenseTensor(ElementType element_type, Shape sizes)
      : type(element_type),
        shape(std::move(sizes)),
        data(static_cast<std::size_t>(element_count(shape)) * bytes_of(type)) {}

  std::int64_t count() const { return element_count(shape); }
  /// The elements. Precondition: T is what visit_element_type names for `type`.
  template <typename T>
  std::span<const T> as() const {
    return {reinterpret_cast<const T*>(data.data()), data.size() / sizeof(T)};
  }
  template <typename T>
  std::span<T> as() {
    return {reinterpret_cast<T*>(data.data()), data.size() / sizeof(T)};
  }

  friend bool operator==(const DenseTensor&, const DenseTensor&) = default;
};

/// The same numbers in the same order under another shape. Precondition: as many elements.
DenseTensor reshaped(DenseTensor tensor, Shape shape);

/// A tensor of `shape` whose element i is element `places[i]` of `tensor`, or `filler` (a tensor of
/// the same type) where `places[i]` is -1.
DenseTensor taken(const DenseTensor& tensor, Shape shape, std::span<const std::int64_t> places,
                  const DenseTensor* filler = nullptr);

/// Puts element i of `source` at `places[i]` of `target`, one after the other.
/// Precondition: both are of one type.
void put(DenseTensor& target, const DenseTensor& source, std::span<const std::int64_t> places);

/// "f32[2, 3]".
std::string form_text(const DenseTensor& tensor);

}  // namespace braid
