#pragma once

#include <optional>
#include <vector>

#include "braid/backend/kernel/gemm_spec.h"
#include "braid/backend/reference/window.h"

namespace braid {

/// A convolution with what may follow it: relu(conv(x, w) + bias + residual). f32, NCHW.
struct ConvolutionSpec {
  std::int64_t samples = 1, in_channels = 1, out_channels = 1, groups = 1;
  SlidingWindow window;
  ValueId x = -1, weight = -1;
  ValueId bias = -1;      ///< One number for each output channel.
  ValueId residual = -1;  ///< As many as the output.
  bool relu = false;
};

/// The convolution that a job of convolution_patterns() is; nullopt where it has no such form.
std::optional<ConvolutionSpec> convolution_spec(const KernelJob& job);

/// Conv with and without a bias, with a sum, with Relu, and with both; weights are constants.
std::vector<NamedPattern> convolution_patterns();

}  // namespace braid
