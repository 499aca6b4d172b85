#include "braid/kernels/number_format.h"

#include <algorithm>
#include <array>

namespace braid {
namespace {

constexpr std::array kFormats = {
    KernelFormat{"bf16", Dtype::bf16, 2, 2, 0},
    KernelFormat{"fp8", Dtype::f8, 1, 1, 2},
    KernelFormat{"fp8_block", Dtype::f8, 1, 1, 1},
    KernelFormat{"nvfp4", Dtype::f4, 0.5625, 0.5625, 1},
    KernelFormat{"int8_wo", Dtype::bf16, 1, 2, 0},
    KernelFormat{"int4_wo", Dtype::bf16, 0.5, 2, 0},
    KernelFormat{"sq", Dtype::i8, 1, 1, 1},
    KernelFormat{"w4a16_mxfp4", Dtype::bf16, 0.53125, 2, 0},
    KernelFormat{"w4a8_mxfp4_mxfp8", Dtype::f8, 0.53125, 1.03125, 1},
};

}  // namespace

std::optional<KernelFormat> kernel_format(std::string_view name) {
  const auto found = std::find_if(kFormats.begin(), kFormats.end(),
                                  [&](const KernelFormat& format) { return format.name == name; });
  if (found == kFormats.end()) return std::nullopt;
  return *found;
}

}  // namespace braid
