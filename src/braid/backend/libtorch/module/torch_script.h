#pragma once

#include <memory>

#include "braid/backend/libtorch/module/torch_network.h"
#include "braid/backend/libtorch/torch_module.h"

namespace braid {

/// The job as TorchScript: its network traced, with its weights as constants, then frozen and
/// optimised for inference, or optimised for mobile devices. Not for TorchWay::eager. Throws what
/// libtorch does.
std::unique_ptr<ComputeKernel> torch_script(const KernelJob& job, TorchWay way);

/// Inputs of a kernel as tensors of libtorch.
std::vector<at::Tensor> torch_views(std::span<const DenseTensor* const> inputs,
                                    std::span<const ImageLayout> layouts);

}  // namespace braid
