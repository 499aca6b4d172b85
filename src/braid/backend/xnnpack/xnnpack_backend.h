#pragma once

#include "braid/backend/kernel/backend.h"

namespace braid {

/// XNNPACK: GEMMs with constant weights, convolutions and pooling with Relu fused, sums,
/// products, Sigmoid and softmax of the last axis. It keeps channels innermost (NHWC): kernels over
/// images turn them round and back.
FoundBackend xnnpack_backend(const BackendOptions& options);

}  // namespace braid
