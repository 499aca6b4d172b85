#pragma once

#include "braid/backend/kernel/backend.h"

namespace braid {

/// GEMMs by OpenBLAS and by BLIS, each loaded under names of its own as both define
/// CBLAS. A bias is what the product is added to, Relu a loop behind it.
FoundBackend openblas_backend(const BackendOptions& options);
FoundBackend blis_backend(const BackendOptions& options);

}  // namespace braid
