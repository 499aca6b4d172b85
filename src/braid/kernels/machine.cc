#include "braid/kernels/machine.h"

namespace braid {

std::optional<KernelMachine> kernel_machine(const Chip& chip, Dtype multiplied) {
  const std::optional<double> peak = matmul_peak(chip, multiplied);
  if (!peak || !chip.on_chip) return std::nullopt;
  return KernelMachine{static_cast<double>(chip.compute_units), chip.on_chip->bytes,
                       chip.memory.bytes_per_s, *peak};
}

}  // namespace braid
