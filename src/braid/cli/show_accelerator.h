#pragma once

#include "braid/chip/accelerator/accelerator_design.h"

namespace braid {

/// Prints cores, buffers, rates, area by part, power by part and price of an accelerator, a line
/// each.
void print_accelerator(const AcceleratorDesign& design);

}  // namespace braid
