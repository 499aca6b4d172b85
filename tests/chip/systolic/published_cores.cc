#include "chip/systolic/published_cores.h"

#include <algorithm>

namespace braid {

SystolicMachine published_systolic_machine(std::int64_t cores, std::int64_t width,
                                           std::int64_t depth, double global_bytes) {
  SystolicMachine machine;
  machine.cores = cores;
  machine.array = {.rows = depth, .columns = width, .unit_words = 32, .words_per_cycle = 64};
  machine.buffers = {
      .l2_words = std::max(1024.0, static_cast<double>(width) * static_cast<double>(depth) * 16),
      .l2_per_operand = true,
      .global_words = global_bytes,
      .global_words_per_cycle = 256,
      .hbm_words_per_cycle = 128};
  return machine;
}

LoopNest published_forward_nest(const LoopNest& gemm) {
  return gemm_nest(gemm.batch * gemm.m, gemm.n, gemm.k);
}

LoopNest published_backward_nest(const LoopNest& gemm) {
  return gemm_nest(gemm.batch * gemm.m, gemm.k, gemm.n);
}

}  // namespace braid
