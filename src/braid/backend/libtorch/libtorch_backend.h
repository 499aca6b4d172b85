#pragma once

#include "braid/backend/kernel/backend.h"

namespace braid {

/// libtorch (Paszke et al. 2019): a kernel for each operation by ATen, GEMMs and convolutions
/// with what follows them, images plain or with channels last; and whole networks eagerly, as
/// frozen TorchScript and as TorchScript for mobile devices. Loads the module braid-torch.so, which
/// is beside the program or in ../lib/braid, and takes up to a second.
FoundBackend libtorch_backend(const BackendOptions& options);

}  // namespace braid
