#pragma once

#include <memory>

#include "braid/backend/kernel/backend.h"
#include "braid/backend/xnnpack/xnnpack_library.h"

namespace braid {

using Xnnpack = std::shared_ptr<const XnnpackFunctions>;

// What each kernel takes, and the kernel: nullptr where the library refuses. Images are channels
// last in the library: plain ones are turned at both ends.
bool xnnpack_takes_product(const KernelJob& job);
std::unique_ptr<ComputeKernel> xnnpack_product(const Xnnpack& library, const KernelJob& job);
bool xnnpack_takes_convolution(const KernelJob& job);
std::unique_ptr<ComputeKernel> xnnpack_convolution(const Xnnpack& library, const KernelJob& job,
                                                   ImageLayout layout);
bool xnnpack_takes_max_pooling(const KernelJob& job);
std::unique_ptr<ComputeKernel> xnnpack_max_pooling(const Xnnpack& library, const KernelJob& job,
                                                   ImageLayout layout);
/// Relu and Sigmoid, and softmax of the last axis.
bool xnnpack_takes_unary(const KernelJob& job);
bool xnnpack_takes_softmax(const KernelJob& job);
std::unique_ptr<ComputeKernel> xnnpack_unary(const Xnnpack& library, const KernelJob& job);
/// Add and Mul.
bool xnnpack_takes_binary(const KernelJob& job);
std::unique_ptr<ComputeKernel> xnnpack_binary(const Xnnpack& library, const KernelJob& job);

}  // namespace braid
