#pragma once

#include <cstdint>

namespace braid {

/// What a kernel graph is mapped onto: equal compute tiles, on-chip memory, and main memory in one
/// or two levels (DFModel, section V).
struct DataflowChip {
  std::int64_t tiles = 1;
  std::int64_t lanes = 1;   ///< Width of a tile's systolic array: rows of M at a time.
  std::int64_t stages = 1;  ///< Its height: columns of N at a time.
  double clock_hz = 0;
  double sram_bytes = 0;
  double dram_bytes = 0;
  double dram_bytes_per_s = 0;
  double spill_bytes = 0;  ///< A second, slower memory behind the DRAM; 0: none.
  double spill_bytes_per_s = 0;
  friend bool operator==(const DataflowChip&, const DataflowChip&) = default;
};

/// Multiply and add count as two.
inline double peak_flops_per_s(const DataflowChip& chip) {
  return 2 * static_cast<double>(chip.tiles) * static_cast<double>(chip.lanes) *
         static_cast<double>(chip.stages) * chip.clock_hz;
}

/// Bandwidth of main memory when `bytes` of it are in use: that of the DRAM while they fit; past
/// that the mean of both levels, weighted by what lies in each.
inline double memory_bytes_per_s(const DataflowChip& chip, double bytes) {
  if (bytes <= chip.dram_bytes || chip.spill_bytes <= 0) return chip.dram_bytes_per_s;
  const double spilled = bytes - chip.dram_bytes;
  return (chip.dram_bytes * chip.dram_bytes_per_s + spilled * chip.spill_bytes_per_s) / bytes;
}

}  // namespace braid
