#pragma once

#include <optional>
#include <string_view>

#include "braid/base/dtype.h"

namespace braid {

/// In what numbers a GEMM is done. Bytes are of an element with its share of scales, as tensor
/// cores read it.
struct KernelFormat {
  std::string_view name;
  Dtype multiplied = Dtype::bf16;  ///< Whose peak counts.
  double weight_bytes = 2, activation_bytes = 2;
  int quantising_reads = 0;  ///< How often 16-bit activations are read to be quantised in the call.
};

/// `bf16`; `fp8` (a scale for a tensor or row), `fp8_block` (for 128 × 128 weights and 128
/// activations), `nvfp4` (for 16); `int8_wo`, `int4_wo` (weights alone); `sq` (8-bit integers,
/// SmoothQuant); `w4a16_mxfp4`, `w4a8_mxfp4_mxfp8` (a scale for 32). nullopt for others.
std::optional<KernelFormat> kernel_format(std::string_view name);

}  // namespace braid
