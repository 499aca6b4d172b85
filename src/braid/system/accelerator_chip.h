#pragma once

#include <string>

#include "braid/chip/accelerator/accelerator_design.h"
#include "braid/system/system.h"

namespace braid {

/// The chip that an accelerator is to the rest of braid: the peak of its arrays in their format,
/// that of its lanes, a compute unit for each tensor core, HBM, the global buffer as on-chip
/// memory, the power of its busiest second and its price, with where each figure is from. Its
/// kernels are compiled, so no host issues them; a GEMM's tile is an array of weights for as many
/// rows of inputs. Power and price that no machine has (quantity.h) are left out. Nothing is
/// reserved. `design` is without fault (accelerator_fault.h).
Chip accelerator_chip(const AcceleratorDesign& design, const std::string& name);

}  // namespace braid
