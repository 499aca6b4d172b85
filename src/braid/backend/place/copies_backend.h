#pragma once

#include "braid/backend/kernel/backend.h"

namespace braid {

/// Kernels of braid's own for operations that only move numbers whose places are known beforehand:
/// reshapes, slices, concatenations, and transposes that leave the innermost dimension in its
/// place. They are there whatever libraries are, since no library here offers them.
const Backend& copies_backend();

}  // namespace braid
