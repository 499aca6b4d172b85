#pragma once

#include <utility>

#include <torch/types.h>

#include "braid/program/dense_tensor.h"
#include "braid/program/program.h"
#include "braid/run/stage_math.h"
#include "braid/run/synthetic_data.h"
#include "braid/run/training_settings.h"

namespace braid {

/// A tensor of libtorch behind a handle.
class TorchTensor : public LibraryTensor {
 public:
  explicit TorchTensor(torch::Tensor of) : tensor(std::move(of)) {}
  torch::Tensor tensor;
};

inline TensorHandle handle_of(torch::Tensor tensor) {
  return std::make_shared<TorchTensor>(std::move(tensor));
}
inline torch::Tensor& tensor_of(const TensorHandle& handle) {
  return static_cast<TorchTensor&>(*handle).tensor;
}

torch::ScalarType scalar_type(ElementType type);

/// The numbers of a tensor; reals as `type`, whole numbers as they are.
torch::Tensor torch_tensor(const DenseTensor& tensor, ElementType type);
/// As f64.
DenseTensor dense_tensor(const torch::Tensor& tensor);

/// In its own type, which is f64 or f32.
DenseTensor dense_tensor_of_row(const torch::Tensor& row);

/// Samples of an input, one after the other.
torch::Tensor input_of(const SyntheticData& data, const Program& program, std::size_t input,
                       std::int64_t first_sample, std::int64_t samples, ElementType type);

}  // namespace braid
