#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "braid/chip/kernel_builder.h"
#include "braid/graph/graph.h"

namespace braid {

/// What the forward kernels of operators [first, last) leave to those of the backward pass.
struct ForwardPass {
  OperatorId first = 0, last = 0;
  std::vector<std::int32_t> first_kernel;  ///< By operator: the first of its kernels, -1 for none.
  std::set<TensorId> leaving;              ///< Tensors that others read, or that the graph gives.
};

/// Adds the backward kernels of these operators, last operator first, as kernels_of describes them;
/// with `step` the optimizer's after them.
void add_backward_kernels(KernelBuilder& builder, const ForwardPass& forward, bool step);

/// The GEMM that a convolution, or the gradient of its input, amounts to: as many
/// multiplications, rounded up to whole ones for each number that it gives.
Kernel convolution_kernel(std::string name, const Convolution& kind, bool input_gradient);

}  // namespace braid
