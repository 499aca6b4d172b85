#pragma once

#include <cstdint>

#include "braid/base/dtype.h"

namespace braid {

//   Accelerator chip;                              // Phaze's TPUv4 template
//   chip.tensor = {8, 128, 128, published_l2_bytes(128 * 128)};
//   matmul_peak_flops(chip);                       // 2 · 8 · 128 · 128 · 1.05e9 = 275.3e12

/// Cores with one systolic array of width × depth multiply-accumulate units each.
struct TensorCores {
  std::int64_t count = 0;
  std::int64_t width = 0;  ///< PE_x: columns of the array.
  std::int64_t depth = 0;  ///< PE_y: rows.
  double l2_bytes = 0;     ///< Buffer of one core for one operand.
  friend bool operator==(const TensorCores&, const TensorCores&) = default;
};

/// Cores of `lanes` units for pointwise operators and reductions.
struct VectorCores {
  std::int64_t count = 0;
  std::int64_t lanes = 0;
  double l2_bytes = 0;  ///< Buffer of one core.
  friend bool operator==(const VectorCores&, const VectorCores&) = default;
};

/// Words that a level hands to the level inside it in a cycle, and as many that it takes from it.
/// Published: 64 of an L2 and 256 of the global buffer (Phaze's artifact, tc_estimator.py);
/// registers feed their multiplier with both operands every cycle.
struct OnChipRates {
  double register_words = 2;         ///< Of one unit's registers.
  double l2_words = 64;              ///< Of one core's L2.
  double global_buffer_words = 256;  ///< Of the whole chip's global buffer.
  friend bool operator==(const OnChipRates&, const OnChipRates&) = default;
};

/// Phaze's accelerator template (Adnan et al., ICML 2024, section 3 and figure 1a): tensor and
/// vector cores with an L2 each, one global buffer, HBM beside the die, one link to a network. A
/// plain value, which may hold anything; accelerator_fault() (accelerator_fault.h) says what is
/// wrong with it.
struct Accelerator {
  TensorCores tensor;
  VectorCores vector;
  double global_buffer_bytes = 0;
  double hbm_bytes = 0;
  double hbm_bytes_per_s = 0;
  double clock_hz = 1.05e9;     ///< Jouppi et al. 2023 (ISCA), TPU v4, table 4.
  Dtype operand = Dtype::bf16;  ///< Of the arrays' operands: a word.
  double register_bytes = 32;   ///< Of one multiply-accumulate unit (Phaze's artifact).
  OnChipRates rates;
  double link_bytes_per_s = 0;  ///< What the chip sends into the network; 0: none.
  double link_latency_s = 0;    ///< Of one message.
  friend bool operator==(const Accelerator&, const Accelerator&) = default;
};

inline double word_bytes(const Accelerator& chip) { return bytes_per_element(chip.operand); }

/// Multiply-accumulate units of all tensor cores.
inline double mac_units(const Accelerator& chip) {
  return static_cast<double>(chip.tensor.count) * static_cast<double>(chip.tensor.width) *
         static_cast<double>(chip.tensor.depth);
}

/// Lanes of all vector cores.
inline double vector_lanes(const Accelerator& chip) {
  return static_cast<double>(chip.vector.count) * static_cast<double>(chip.vector.lanes);
}

/// Dense peak of the tensor cores: two operations a unit and cycle.
inline double matmul_peak_flops(const Accelerator& chip) {
  return 2 * mac_units(chip) * chip.clock_hz;
}

/// Peak of the vector cores: one operation a lane and cycle.
inline double vector_peak_flops(const Accelerator& chip) {
  return vector_lanes(chip) * chip.clock_hz;
}

/// L2 of a core of `units` units, for each operand: max(1 KB, units/64 KB), KB being 1024 bytes
/// (Adnan et al., appendix C.1). A tensor core has width × depth units, a vector core its lanes.
double published_l2_bytes(double units);

}  // namespace braid
