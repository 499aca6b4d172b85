#pragma once

#include "braid/chip/accelerator/accelerator_design.h"
#include "braid/chip/accelerator/architectures.h"

namespace braid {

/// Prints cores, buffers, rates, area by part, power by part and price of an accelerator, a line
/// each.
void print_accelerator(const AcceleratorDesign& design);

/// Prints how many architectures a space has and the first and the last of them, or all as JSON. An
/// exit status of verbs.h.
int show_architectures(const ArchitectureSpace& space, bool json);

}  // namespace braid
