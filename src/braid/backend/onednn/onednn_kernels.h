#pragma once

#include <memory>

#include "braid/backend/kernel/pooling_spec.h"
#include "braid/backend/onednn/onednn_kernel.h"

namespace braid {

enum class OneDnnLayout : std::uint8_t {
  nchw,     ///< Tensors as they lie in the program.
  blocked,  ///< The library's own, with reorders at both ends.
};

// Kernels for jobs that have the form; nullptr where the library does not implement them.
std::unique_ptr<ComputeKernel> onednn_product(
    const std::shared_ptr<const OneDnnFunctions>& functions, const KernelJob& job);
std::unique_ptr<ComputeKernel> onednn_convolution(
    const std::shared_ptr<const OneDnnFunctions>& functions, const KernelJob& job,
    OneDnnLayout layout);
std::unique_ptr<ComputeKernel> onednn_pooling(
    const std::shared_ptr<const OneDnnFunctions>& functions, const KernelJob& job,
    const PoolingSpec& spec);

/// Functions of one tensor, element by element: patterns, and what they are.
std::vector<NamedPattern> onednn_unary_patterns();
std::unique_ptr<ComputeKernel> onednn_unary(const std::shared_ptr<const OneDnnFunctions>& functions,
                                            const KernelJob& job);
/// Functions of two tensors of which one may be broadcast to the other.
std::vector<NamedPattern> onednn_binary_patterns();
bool onednn_takes_binary(const KernelJob& job);
std::unique_ptr<ComputeKernel> onednn_binary(
    const std::shared_ptr<const OneDnnFunctions>& functions, const KernelJob& job);
/// Softmax along one axis.
bool onednn_takes_softmax(const KernelJob& job);
std::unique_ptr<ComputeKernel> onednn_softmax(
    const std::shared_ptr<const OneDnnFunctions>& functions, const KernelJob& job);

}  // namespace braid
