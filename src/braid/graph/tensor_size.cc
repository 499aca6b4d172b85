#include "braid/graph/tensor_size.h"

namespace braid {

std::optional<std::int64_t> element_count(const Tensor& tensor) {
  std::int64_t elements = 1;
  for (const std::int64_t dim : tensor.dims) {
    if (dim < 1 || __builtin_mul_overflow(elements, dim, &elements)) return std::nullopt;
  }
  std::int64_t bits = 0;
  if (__builtin_mul_overflow(elements, std::int64_t{bits_per_element(tensor.dtype)}, &bits)) {
    return std::nullopt;
  }
  return elements;
}

double elements_of(const Tensor& tensor) {
  double elements = 1;
  for (const std::int64_t dim : tensor.dims) elements *= static_cast<double>(dim);
  return elements;
}

double bytes_of(const Tensor& tensor) {
  return elements_of(tensor) * bytes_per_element(tensor.dtype);
}

bool is_floating(Dtype dtype) {
  switch (dtype) {
    case Dtype::f64:
    case Dtype::f32:
    case Dtype::tf32:
    case Dtype::f16:
    case Dtype::bf16:
    case Dtype::f8:
    case Dtype::f4:
      return true;
    case Dtype::i64:
    case Dtype::i32:
    case Dtype::i16:
    case Dtype::i8:
    case Dtype::boolean:
      return false;
  }
  return false;
}

}  // namespace braid
