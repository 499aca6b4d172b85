#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "braid/program/dense_tensor.h"

namespace braid {

/// The elements of a tensor of any type as `double`, `std::int64_t` or `std::uint64_t`, and a
/// tensor of any type of such numbers. Reference kernels compute in these three, which hold every
/// element of the types that they stand for: f16, bf16 and f32 are exact in double.
///
/// To a real type numbers are rounded to the nearest, ties to even, once. To a whole type reals are
/// cut off towards zero; those that it does not hold become its least or greatest, and NaN 0. Whole
/// numbers wrap around. To a boolean all but zero is true.
template <typename Number>
std::vector<Number> numbers_of(const DenseTensor& tensor);

template <typename Number>
DenseTensor tensor_of(ElementType type, Shape shape, std::span<const Number> numbers);

template <typename Number>
DenseTensor tensor_of(ElementType type, Shape shape, const std::vector<Number>& numbers) {
  return tensor_of(type, std::move(shape), std::span<const Number>(numbers));
}

double real_of(Half half);
double real_of(BrainHalf half);
/// To the nearest, ties to even; beyond the greatest to infinity.
Half half_of(double real);
BrainHalf brain_half_of(double real);

}  // namespace braid
