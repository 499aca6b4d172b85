#include "braid/profile/recurrent_time.h"

#include <algorithm>

#include "braid/profile/operator_time.h"

namespace braid {
namespace {

/// [m × k]·[k × n], each operand read and the result written once.
double gemm_s(double m, double n, double k, double element_bytes, double peak, const Chip& chip) {
  if (k <= 0 || n <= 0) return 0;
  const double bytes = (m * k + k * n + m * n) * element_bytes;
  return std::max(matmul_compute_s({1, m, n, k}, peak, chip), memory_s(bytes, chip)) +
         chip.efficiency.kernel_launch_s;
}

}  // namespace

RecurrentTime recurrent_time(const RecurrentShape& shape, double peak, const Chip& chip) {
  const double all_rows = shape.steps * shape.rows;
  const double weight_bytes = shape.gates * shape.state * shape.element_bytes;
  const bool stays_on_chip = chip.on_chip && weight_bytes <= chip.on_chip->bytes;
  const double weights_s =
      stays_on_chip ? weight_bytes / chip.on_chip->bytes_per_s : memory_s(weight_bytes, chip);
  const auto step_s = [&](double n, double k) {
    return std::max(matmul_compute_s({1, shape.rows, n, k}, peak, chip), weights_s) +
           chip.efficiency.kernel_launch_s;
  };
  const auto inputs_s = [&](double m, double n, double k) {
    return gemm_s(m, n, k, shape.element_bytes, peak, chip);
  };
  RecurrentTime time;
  time.forward_s =
      inputs_s(all_rows, shape.gates, shape.input) + shape.steps * step_s(shape.gates, shape.state);
  time.backward_input_s =
      inputs_s(all_rows, shape.input, shape.gates) + shape.steps * step_s(shape.state, shape.gates);
  time.backward_weight_s = inputs_s(shape.input + shape.state, shape.gates, all_rows);
  return time;
}

}  // namespace braid
