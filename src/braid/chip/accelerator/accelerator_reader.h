#pragma once

#include "braid/base/document.h"
#include "braid/chip/accelerator/accelerator_design.h"
#include "braid/chip/accelerator/architectures.h"

namespace braid {

/// Reads the `accelerator` block of a chip (docs/accelerator.md). L2 sizes that are left out are
/// the published ones; the energy of a multiplication is that of the format. Throws Error, also for
/// every fault of accelerator_fault.h.
AcceleratorDesign read_accelerator(const Value& value);

/// Reads an ArchitectureSpace: `area`, `least_share`, `least_share_of_single`, and [least, most] of
/// `tensor_cores`, `vector_cores`, `width`, `depth`, `global_buffer`, powers of two. Throws Error,
/// also where no architecture is within the area.
ArchitectureSpace read_architecture_space(const Value& value);

}  // namespace braid
