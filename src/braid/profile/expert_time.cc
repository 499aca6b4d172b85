#include "braid/profile/expert_time.h"

#include <algorithm>

namespace braid {

OperatorTimes expert_times(const ExpertWork& shape, double peak, const Chip& chip) {
  const double launch_s = chip.efficiency.kernel_launch_s;
  const double rows = shape.visits / shape.experts;
  const double up = shape.matrices - 1;
  const double outer_bytes = shape.visits * shape.hidden * shape.element_bytes;
  const double inner_bytes = shape.visits * shape.inner * shape.element_bytes;
  const double token_bytes = shape.tokens * shape.hidden * shape.element_bytes;
  const auto gemm_s = [&](double n, double k, double read_and_written) {
    return std::max(matmul_compute_s({shape.experts, rows, n, k}, peak, chip),
                    memory_s(read_and_written, chip)) +
           launch_s;
  };
  const auto moved_s = [&](double bytes) { return memory_s(bytes, chip) + launch_s; };
  const auto converted_s = [&](double bytes) { return shape.is_narrow ? moved_s(2 * bytes) : 0.0; };
  const double reached = std::min(shape.experts, shape.visits);
  const double down_weights = reached * shape.hidden * shape.inner;
  const double up_weights = up * down_weights;
  const double operands = outer_bytes + up * inner_bytes;
  const double results = inner_bytes + outer_bytes;

  const auto biased_s = [&](double bytes) { return shape.biased ? moved_s(bytes) : 0; };
  const auto clamped_s = [&](double bytes) { return shape.clamped ? moved_s(bytes) : 0; };
  const double outputs = shape.visits * shape.hidden;
  const double sorted_s = shape.sorted ? 2 * moved_s(2 * outer_bytes) : 0;

  OperatorTimes times;
  times.forward_s =
      moved_s(2 * outer_bytes) + converted_s(outer_bytes) +
      gemm_s(up * shape.inner, shape.hidden, operands + up_weights * shape.weight_bytes) +
      moved_s(shape.matrices * inner_bytes) + converted_s(inner_bytes) +
      gemm_s(shape.hidden, shape.inner, results + down_weights * shape.weight_bytes) +
      moved_s(outer_bytes + token_bytes) + biased_s(24 * outputs + 2 * outer_bytes) +
      clamped_s(4 * up * inner_bytes) + sorted_s;
  times.backward_input_s =
      moved_s(token_bytes + outer_bytes) + converted_s(outer_bytes) +
      gemm_s(shape.inner, shape.hidden, results + down_weights * shape.weight_bytes) +
      moved_s((shape.matrices + up) * inner_bytes) + converted_s(up * inner_bytes) +
      gemm_s(shape.hidden, up * shape.inner, operands + up_weights * shape.weight_bytes) +
      moved_s(outer_bytes + token_bytes) +
      biased_s(32 * outputs + 4 * outer_bytes + up * inner_bytes) +
      clamped_s(5 * up * inner_bytes) + sorted_s;
  const auto gradient_s = [&](double m, double n, double read, double weights) {
    return std::max(matmul_compute_s({shape.experts, m, n, rows}, peak, chip),
                    memory_s(read + 2 * weights * shape.gradient_bytes, chip)) +
           launch_s;
  };
  times.backward_weight_s = gradient_s(shape.hidden, up * shape.inner, operands, up_weights) +
                            gradient_s(shape.inner, shape.hidden, results, down_weights);
  return times;
}

double experts_issued(double experts, bool is_narrow, bool travel, bool biased, bool clamped,
                      bool sorted) {
  constexpr double kGemms = 2, kPointwise = 3, kTransfers = 2, kBiases = 2, kClamps = 3;
  constexpr double kSorts = 2;
  return kGemms * experts * (is_narrow ? 2 : 1) + kPointwise + (travel ? kTransfers : 0) +
         (biased ? experts + kBiases : 0) + (clamped ? kClamps : 0) + (sorted ? kSorts : 0);
}

bool is_sorted(const MoeExperts& op, const Execution& how) {
  const bool one_sender = how.ep == 1 && (how.tp == 1 || how.whole_experts);
  return op.padded && !one_sender && op.experts > how.ep;
}

}  // namespace braid
