#pragma once

#include <string>

#include "braid/system/chip.h"

namespace braid {

/// Prints which kernels of a chip were measured and how far off their forms are; nothing when none
/// were.
void print_measured_kernels(const Chip& chip);

/// Prints what one kernel takes, by every backend in every format that was measured on the chip.
/// `kernel`: an operation and its sizes, "gemm=4096,4096,4096"; an operation alone prints the
/// figures. An exit status of verbs.h. Throws Error for other texts, and for a chip whose kernels
/// were not measured.
int show_kernel(const Chip& chip, const std::string& kernel, bool json);

}  // namespace braid
