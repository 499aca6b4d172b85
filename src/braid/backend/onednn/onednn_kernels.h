#pragma once

#include <memory>

#include "braid/backend/kernel/pooling_spec.h"
#include "braid/backend/onednn/onednn_kernel.h"

namespace braid {

inline dnnl_alg_kind_t onednn_gelu(GeluForm form) {
  return form == GeluForm::erf ? dnnl_eltwise_gelu_erf : dnnl_eltwise_gelu_tanh;
}

// Kernels for jobs that have the form; nullptr where the library does not implement them.
std::unique_ptr<ComputeKernel> onednn_product(
    const std::shared_ptr<const OneDnnFunctions>& functions, const KernelJob& job);
std::unique_ptr<ComputeKernel> onednn_convolution(
    const std::shared_ptr<const OneDnnFunctions>& functions, const KernelJob& job,
    const KernelLayouts& layouts);
/// One whose tensors are plain and that computes in the library's own layout, with turns at both
/// ends.
std::unique_ptr<ComputeKernel> onednn_turning_convolution(
    const std::shared_ptr<const OneDnnFunctions>& functions, const KernelJob& job);
std::unique_ptr<ComputeKernel> onednn_pooling(
    const std::shared_ptr<const OneDnnFunctions>& functions, const KernelJob& job,
    ImageLayout layout);

/// Functions of one tensor, element by element: patterns, and what they are.
std::vector<NamedPattern> onednn_unary_patterns();
std::unique_ptr<ComputeKernel> onednn_unary(const std::shared_ptr<const OneDnnFunctions>& functions,
                                            const KernelJob& job);
/// Functions of two tensors of which one may be broadcast to the other.
std::vector<NamedPattern> onednn_binary_patterns();
bool onednn_takes_binary(const KernelJob& job);
std::unique_ptr<ComputeKernel> onednn_binary(
    const std::shared_ptr<const OneDnnFunctions>& functions, const KernelJob& job);
/// A function of two tensors, then one of the result: Add+relu, Mul+add, Mul+add+relu.
std::vector<NamedPattern> onednn_chain_patterns();
bool onednn_takes_chain(const KernelJob& job);
std::unique_ptr<ComputeKernel> onednn_chain(const std::shared_ptr<const OneDnnFunctions>& functions,
                                            const KernelJob& job, ImageLayout layout);
/// Softmax along one axis.
bool onednn_takes_softmax(const KernelJob& job);
std::unique_ptr<ComputeKernel> onednn_softmax(
    const std::shared_ptr<const OneDnnFunctions>& functions, const KernelJob& job);

/// LayerNormalization over the last dimension, with a scale and maybe a shift.
bool onednn_takes_layer_norm(const KernelJob& job);
std::unique_ptr<ComputeKernel> onednn_layer_norm(
    const std::shared_ptr<const OneDnnFunctions>& functions, const KernelJob& job);
bool onednn_takes_transpose(const KernelJob& job);
std::unique_ptr<ComputeKernel> onednn_transpose(
    const std::shared_ptr<const OneDnnFunctions>& functions, const KernelJob& job);

}  // namespace braid
