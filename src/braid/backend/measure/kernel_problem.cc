#include "braid/backend/measure/kernel_problem.h"

#include <algorithm>
#include <cmath>
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

namespace {

bool is_of_numbers(const DenseTensor& tensor) {
  if (tensor.type != ElementType::f32) return true;
  const std::span<const float> numbers = tensor.as<float>();
  return std::none_of(numbers.begin(), numbers.end(), [](float x) { return std::isnan(x); });
}

void make_positive(DenseTensor& tensor) {
  if (tensor.type != ElementType::f32) return;
  for (float& each : tensor.as<float>()) each = std::abs(each);
}

struct ExpectedAnswer {
  std::span<const DenseTensor> outputs;
  double share = 0;  ///< That a number may differ by, of itself and of its tensor's greatest.
};

std::string first_problem(ComputeKernel& kernel, ImageLayout writes,
                          std::span<const DenseTensor> laid, const ExpectedAnswer& expected) {
  std::vector<const DenseTensor*> pointers;
  std::vector<DenseTensor> outputs;
  std::vector<DenseTensor*> written;
  for (const DenseTensor& each : laid) pointers.push_back(&each);
  for (const DenseTensor& each : expected.outputs) outputs.emplace_back(each.type, each.shape);
  written.reserve(outputs.size());
  for (DenseTensor& each : outputs) written.push_back(&each);
  for (int time = 0; time < 2; ++time) {
    kernel.run_all(pointers, written);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const DenseTensor& right = expected.outputs[i];
      std::string problem =
          tensor_difference(laid_plain(outputs[i], writes), right,
                            {expected.share, expected.share * greatest_size(right)});
      if (!problem.empty()) return problem;
    }
  }
  return "";
}

}  // namespace

KnownAnswer random_answer(const KernelJob& job, std::uint64_t seed) {
  KnownAnswer answer{random_inputs(job.region, seed), {}};
  answer.outputs = run(job.region, answer.inputs);
  if (std::all_of(answer.outputs.begin(), answer.outputs.end(), is_of_numbers)) return answer;
  for (DenseTensor& each : answer.inputs) make_positive(each);
  answer.outputs = run(job.region, answer.inputs);
  return answer;
}

std::string kernel_problem(ComputeKernel& kernel, const KernelJob& job,
                           const KernelLayouts& layouts, const KnownAnswer& known) {
  return first_problem(kernel, layouts.writes, laid_inputs(job, layouts, known.inputs),
                       {known.outputs, 1e-5});
}

std::string region_problem(ComputeKernel& kernel, const KnownAnswer& known) {
  return first_problem(kernel, ImageLayout::plain, known.inputs, {known.outputs, 1e-4});
}

}  // namespace braid
