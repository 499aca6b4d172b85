#pragma once

#include <span>

#include "braid/backend/reference/reference_kernel.h"

namespace braid {

// Kernels by what they are.
std::span<const ReferenceEntry> unary_kernels();
std::span<const ReferenceEntry> binary_kernels();
std::span<const ReferenceEntry> quantization_kernels();
std::span<const ReferenceEntry> gemm_kernels();
std::span<const ReferenceEntry> convolution_kernels();
std::span<const ReferenceEntry> pooling_kernels();
std::span<const ReferenceEntry> normalization_kernels();
std::span<const ReferenceEntry> reduction_kernels();
std::span<const ReferenceEntry> loss_kernels();
std::span<const ReferenceEntry> view_kernels();
std::span<const ReferenceEntry> movement_kernels();
std::span<const ReferenceEntry> gather_kernels();
std::span<const ReferenceEntry> resize_kernels();
std::span<const ReferenceEntry> grid_sample_kernels();
std::span<const ReferenceEntry> constant_kernels();
std::span<const ReferenceEntry> recurrent_kernels();
std::span<const ReferenceEntry> attention_kernels();

}  // namespace braid
