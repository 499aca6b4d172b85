#include "braid/run/torch/torch_tensor.h"

#include <algorithm>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "braid/base/error.h"
#include "braid/base/index.h"
#include "braid/program/numbers.h"

namespace braid {

torch::ScalarType scalar_type(ElementType type) {
  switch (type) {
    case ElementType::f64:
      return torch::kFloat64;
    case ElementType::f32:
      return torch::kFloat32;
    case ElementType::bf16:
      return torch::kBFloat16;
    default:
      throw Error("models are trained in f64, f32 or bf16, not " + std::string(name_of(type)));
  }
}

torch::Tensor torch_tensor(const DenseTensor& tensor, ElementType type) {
  if (is_real(tensor.type)) {
    std::vector<double> numbers = numbers_of<double>(tensor);
    return torch::from_blob(numbers.data(), tensor.shape, torch::kFloat64)
        .to(scalar_type(type), /*non_blocking=*/false, /*copy=*/true);
  }
  std::vector<std::int64_t> numbers = numbers_of<std::int64_t>(tensor);
  return torch::from_blob(numbers.data(), tensor.shape, torch::kInt64).clone();
}

DenseTensor dense_tensor(const torch::Tensor& tensor) {
  const torch::Tensor numbers = tensor.detach().to(torch::kFloat64).contiguous();
  DenseTensor result(ElementType::f64, numbers.sizes().vec());
  std::copy_n(numbers.data_ptr<double>(), numbers.numel(), result.as<double>().begin());
  return result;
}

DenseTensor dense_tensor_of_row(const torch::Tensor& row) {
  const torch::Tensor numbers = row.detach().contiguous();
  const bool is_wide = numbers.scalar_type() == torch::kFloat64;
  DenseTensor result(is_wide ? ElementType::f64 : ElementType::f32, numbers.sizes().vec());
  if (is_wide) {
    std::copy_n(numbers.data_ptr<double>(), numbers.numel(), result.as<double>().begin());
  } else {
    std::copy_n(numbers.data_ptr<float>(), numbers.numel(), result.as<float>().begin());
  }
  return result;
}

torch::Tensor input_of(const SyntheticData& data, const Program& program, std::size_t input,
                       std::int64_t first_sample, std::int64_t samples, ElementType type) {
  const bool is_number = is_real(program.inputs[input].type);
  std::vector<torch::Tensor> rows;
  for (std::int64_t s = 0; s < samples; ++s) {
    rows.push_back(is_number ? torch::tensor(data.reals(input, first_sample + s), torch::kFloat64)
                             : torch::tensor(data.ids(input, first_sample + s), torch::kInt64));
  }
  std::vector<std::int64_t> sizes = *program.inputs[input].shape;
  sizes.insert(sizes.begin(), samples);
  const torch::Tensor all = torch::stack(rows).reshape(sizes);
  return is_number ? all.to(scalar_type(type)) : all;
}

}  // namespace braid
