#pragma once

#include <optional>

#include "braid/base/dtype.h"
#include "braid/system/chip.h"

namespace braid {

/// What forms of kernel times take from a chip's file.
struct KernelMachine {
  double sms = 0;                 ///< Compute units.
  double l2_bytes = 0;            ///< Shared last-level SRAM.
  double memory_bytes_per_s = 0;  ///< Of main memory, as specified.
  double flops_per_s = 0;         ///< Dense peak of the format that is multiplied, as specified.
};

/// nullopt for a chip without a peak in that format or without a last-level cache.
std::optional<KernelMachine> kernel_machine(const Chip& chip, Dtype multiplied);

}  // namespace braid
