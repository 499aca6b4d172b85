#pragma once

#include <string>

#include "braid/program/dense_tensor.h"

namespace braid {

/// What two numbers may differ by: |a - b| ≤ absolute + relative · |b|.
struct Tolerance {
  double relative = 0, absolute = 0;
};

/// The greatest absolute value of an element; 0 where there is none.
double greatest_size(const DenseTensor& tensor);

/// How `actual` differs from `expected` beyond the tolerance, or "". Types and shapes must be
/// equal, and so must whole numbers, infinities and NaN.
std::string tensor_difference(const DenseTensor& actual, const DenseTensor& expected,
                              const Tolerance& tolerance);

}  // namespace braid
