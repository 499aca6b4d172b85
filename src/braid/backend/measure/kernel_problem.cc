#include "braid/backend/measure/kernel_problem.h"

#include <vector>

#include "braid/backend/executor.h"
#include "braid/program/tensor_difference.h"

namespace braid {

DenseTensor laid_out(const DenseTensor& plain, ImageLayout layout) {
  DenseTensor turned(plain.type, plain.shape);
  turn_layout(plain, ImageLayout::plain, turned, layout);
  return turned;
}

DenseTensor laid_plain(const DenseTensor& tensor, ImageLayout layout) {
  DenseTensor plain(tensor.type, tensor.shape);
  turn_layout(tensor, layout, plain, ImageLayout::plain);
  return plain;
}

std::vector<DenseTensor> laid_inputs(const KernelJob& job, const KernelLayouts& layouts,
                                     std::span<const DenseTensor> inputs) {
  std::vector<DenseTensor> laid;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    laid.push_back(laid_out(inputs[i], layout_of(job, job.region.inputs[i].value, layouts)));
  }
  return laid;
}

std::string kernel_problem(ComputeKernel& kernel, const KernelJob& job,
                           const KernelLayouts& layouts, std::span<const DenseTensor> inputs) {
  constexpr double share = 1e-5;
  const DenseTensor expected = run(job.region, inputs).front();
  const double most = greatest_size(expected);
  std::vector<const DenseTensor*> pointers;
  const std::vector<DenseTensor> laid = laid_inputs(job, layouts, inputs);
  pointers.reserve(laid.size());
  for (const DenseTensor& each : laid) pointers.push_back(&each);
  DenseTensor output(expected.type, expected.shape);
  for (int time = 0; time < 2; ++time) {
    kernel.run(pointers, output);
    const DenseTensor answer = laid_plain(output, layouts.writes);
    std::string problem = tensor_difference(answer, expected, {share, share * most});
    if (!problem.empty()) return problem;
  }
  return "";
}

}  // namespace braid
