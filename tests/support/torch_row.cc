#include "support/torch_row.h"

#include <torch/torch.h>

#include "braid/run/torch/torch_tensor.h"

namespace braid::test {

TensorHandle torch_row(const std::vector<double>& numbers) {
  return handle_of(torch::tensor(numbers, torch::kFloat64));
}

std::vector<double> numbers_of(const TensorHandle& row) {
  const torch::Tensor& tensor = tensor_of(row);
  return {tensor.data_ptr<double>(), tensor.data_ptr<double>() + tensor.numel()};
}

}  // namespace braid::test
