#pragma once

#include "braid/backend/kernel/backend.h"

namespace braid {

/// Eigen, a library of templates that is compiled into braid: GEMMs with a bias or a
/// residual and Relu, and sums and products of tensors of one shape, in one expression each. One
/// thread.
FoundBackend eigen_backend(const BackendOptions& options);

}  // namespace braid
