#pragma once

#include "braid/backend/kernel/backend.h"

namespace braid {

/// LIBXSMM: GEMMs of small matrices by code that is made for their sizes when the kernel is. One
/// thread.
FoundBackend libxsmm_backend(const BackendOptions& options);

}  // namespace braid
