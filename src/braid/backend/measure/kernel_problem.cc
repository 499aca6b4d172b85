#include "braid/backend/measure/kernel_problem.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "braid/backend/executor.h"
#include "braid/program/numbers.h"
#include "braid/program/tensor_difference.h"

namespace braid {

std::string kernel_problem(ComputeKernel& kernel, const KernelJob& job,
                           std::span<const DenseTensor> inputs) {
  constexpr double share = 1e-5;
  const DenseTensor expected = run(job.region, inputs).front();
  double most = 0;
  for (const double each : numbers_of<double>(expected)) most = std::max(most, std::abs(each));
  std::vector<const DenseTensor*> pointers;
  for (const DenseTensor& each : inputs) pointers.push_back(&each);
  DenseTensor output(expected.type, expected.shape);
  for (int time = 0; time < 2; ++time) {
    kernel.run(pointers, output);
    std::string problem = tensor_difference(output, expected, {share, share * most});
    if (!problem.empty()) return problem;
  }
  return "";
}

}  // namespace braid
