#pragma once

namespace braid {

// Arithmetic per element of pointwise functions, each addition, product, division, comparison and
// exponential counted once.

/// x / (1 + e^-x): negate, exponential, add, divide, as PyTorch's kernel computes it
/// (aten/src/ATen/native/cuda/ActivationSiluKernel.cu, silu_kernel, as of 2.0).
inline constexpr double kSiluFlops = 4;
/// x·Φ(x): about what a short polynomial and a division take for Φ, and two products.
inline constexpr double kGeluFlops = 10;
inline constexpr double kTanhFlops = 10;  ///< Of a tanh by itself; likewise.

/// State that Adam keeps of a parameter in mixed precision: an f32 copy and two f32 moments
/// (Micikevicius et al. 2018; Rajbhandari et al. 2020, section 3.1).
inline constexpr double kAdamStateBytes = 12;

}  // namespace braid
