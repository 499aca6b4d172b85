#pragma once

#include "braid/backend/kernel/backend.h"

namespace braid {

/// What turns a tensor from one layout to another, as a backend: a pattern for each pair.
const Backend& layout_backend();

/// Of two that differ.
const BackendPattern& turning_pattern(ImageLayout from, ImageLayout to);

/// The job of turning a tensor of that form.
KernelJob turning_job(const TensorForm& form);

}  // namespace braid
