#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "braid/backend/kernel/backend.h"

namespace braid {

/// A tensor that lies in a layout, from one that is plain, and back.
DenseTensor laid_out(const DenseTensor& plain, ImageLayout layout);
DenseTensor laid_plain(const DenseTensor& tensor, ImageLayout layout);

/// The inputs of a job's region as a kernel reads them.
std::vector<DenseTensor> laid_inputs(const KernelJob& job, const KernelLayouts& layouts,
                                     std::span<const DenseTensor> inputs);

/// What a job reads (plain) and gives in some run, by inputs and outputs of its region.
struct KnownAnswer {
  std::vector<DenseTensor> inputs, outputs;
};

/// Random inputs and the reference kernels' answer: where it is not of numbers, as
/// roots of negative ones are not, for positive inputs.
KnownAnswer random_answer(const KernelJob& job, std::uint64_t seed);

/// How a kernel's answer differs from the reference kernels', which is known for these (plain)
/// inputs of the job's region, or "". f32 sums in another order may differ by 10⁻⁵ of the element
/// and of the output's greatest. The kernel runs twice, for what it keeps must not change its
/// answer.
std::string kernel_problem(ComputeKernel& kernel, const KernelJob& job,
                           const KernelLayouts& layouts, const KnownAnswer& known);

/// The same for a region of any number of outputs, within 10⁻⁴, as it holds many operations.
std::string region_problem(ComputeKernel& kernel, const KnownAnswer& known);

}  // namespace braid
