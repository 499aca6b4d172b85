#pragma once

#include <span>
#include <string>

#include "braid/backend/kernel/backend.h"

namespace braid {

/// How a kernel's answer differs from the reference kernels' for these inputs of the job's region,
/// or "". f32 sums in another order may differ by 10⁻⁵ of the element and of the output's greatest.
/// The kernel runs twice, for what it keeps must not change its answer.
std::string kernel_problem(ComputeKernel& kernel, const KernelJob& job,
                           std::span<const DenseTensor> inputs);

}  // namespace braid
