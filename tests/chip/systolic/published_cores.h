#pragma once

#include <cstdint>

#include "braid/chip/systolic/operator_latency.h"

namespace braid {

// Named mode: the constants with which Phaze's artifact has Sunstone map GEMMs (Adnan et al. 2024;
// tc_estimator.py and estimator_wrapper.py), to compare latencies with its estimates.

/// Units' registers of 32 words; three L2 of max(1 KB, width · depth / 64 KB) and a global buffer
/// whose bytes it counts as words; rates of 64, 256 and 128 words a cycle, whatever the shape.
SystolicMachine published_systolic_machine(std::int64_t cores, std::int64_t width,
                                           std::int64_t depth, double global_bytes);

/// A GEMM as the artifact states it: the batch is part of the rows, as if all shared the second
/// operand. The backward pass is that of the first operand alone.
LoopNest published_forward_nest(const LoopNest& gemm);
LoopNest published_backward_nest(const LoopNest& gemm);

/// Its latencies are cycles over this many a millisecond.
inline constexpr double kPublishedCyclesPerMs = 1.05e6;

}  // namespace braid
