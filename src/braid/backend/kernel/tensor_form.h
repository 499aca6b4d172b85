#pragma once

#include "braid/program/dense_tensor.h"

namespace braid {

/// What a tensor is without its numbers.
struct TensorForm {
  ElementType type = ElementType::f32;
  Shape shape;

  std::int64_t count() const { return element_count(shape); }
  friend bool operator==(const TensorForm&, const TensorForm&) = default;
};

inline TensorForm form_of(const DenseTensor& tensor) { return {tensor.type, tensor.shape}; }

}  // namespace braid
