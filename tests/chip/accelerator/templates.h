#pragma once

#include "braid/chip/accelerator/accelerator.h"

namespace braid {

/// A template with the published sizes of L2.
inline Accelerator template_of(std::int64_t tensor, std::int64_t vector, std::int64_t width,
                               std::int64_t depth, double global_buffer_mib) {
  Accelerator chip;
  const auto units = static_cast<double>(width * depth);
  chip.tensor = {tensor, width, depth, published_l2_bytes(units)};
  chip.vector = {vector, width, published_l2_bytes(static_cast<double>(width))};
  chip.global_buffer_bytes = global_buffer_mib * 0x1p20;
  chip.hbm_bytes = 32 * 0x1p30;
  chip.hbm_bytes_per_s = 268.8e9;
  chip.link_bytes_per_s = 4 * 0x1p30;
  return chip;
}

inline Accelerator tpu_v4_template() { return template_of(8, 2, 128, 128, 128); }

}  // namespace braid
