#pragma once

#include "braid/backend/kernel/backend.h"

namespace braid {

/// Loop nests that Halide compiles while the program runs (Ragan-Kelley et al. 2013): products,
/// convolutions, softmax and layer normalisation together with what works element by element around
/// them, and chains of that. Patterns come from a rule; the tile in registers is part of a kernel's
/// name, so that each is measured and kept by itself.
FoundBackend halide_backend(const BackendOptions& options);

}  // namespace braid
