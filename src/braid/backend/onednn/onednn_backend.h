#pragma once

#include "braid/backend/kernel/backend.h"

namespace braid {

/// oneDNN, version 2: GEMMs and convolutions with what follows fused (post-ops),
/// pointwise functions, softmax and pooling. Weights that are constants are packed as the library
/// likes them. Convolutions come twice: `nchw` computes on tensors as they lie, `blocked` turns
/// them into the library's own layout and back.
FoundBackend onednn_backend(const BackendOptions& options);

}  // namespace braid
