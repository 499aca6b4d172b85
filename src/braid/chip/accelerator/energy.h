#pragma once

#include <optional>

#include "braid/chip/accelerator/accelerator.h"
#include "braid/chip/accelerator/area.h"

namespace braid {

/// What operations and bytes cost, in joules and watts. Defaults are of 7 nm, TPU v4's process,
/// though the area model is of 22 nm: they compare templates with each other and with TPU v4.
struct EnergyFigures {
  /// One multiplication of two bf16 numbers and one f32 addition: 0.21 + 0.38 pJ (Jouppi et al.,
  /// "Ten Lessons from Three Generations Shaped Google's TPUv4i", ISCA 2021, table 2, 7 nm).
  double mac_j = 0.59e-12;
  /// One f32 multiplication, the dearest operation of a cycle (the same table).
  double vector_operation_j = 1.31e-12;
  /// Reading or writing a byte of a unit's registers: 0.12 pJ for 32 bits (regfile.csv of Phaze's
  /// artifact, one register, 45 nm).
  double register_byte_j = 0.03e-12;
  /// Factor on sram_byte_j(), of L2 and global buffers.
  double sram_factor = 1;
  /// 0.05624 W per GB/s (Ko et al., DFModel, artifact, HBM).
  double hbm_byte_j = 56.24e-12;
  /// 0.052 W per GB/s (Ko et al., DFModel, artifact, PCIe and InfiniBand).
  double link_byte_j = 52e-12;
  /// What the chip takes when idle, leakage and clocks, per area: TPU v4's 90 W (Jouppi et al.
  /// 2023, table 4) over the area of its template.
  double static_w_per_um2 = 90 / kTpuV4AreaUm2;
  friend bool operator==(const EnergyFigures&, const EnergyFigures&) = default;
};

/// EnergyFigures::mac_j of operands of `dtype` with f32 sums (i32 of i8), from the same table;
/// nullopt for formats that it does not have.
std::optional<double> published_mac_j(Dtype dtype);

/// Reading or writing a byte of an SRAM of `bytes`: for 64 bits 7.5 pJ in 8 KB, 8.5 in 32 KB, 14 in
/// 1 MB (the same table), interpolated in the logarithms, as 8 KB below and as 1 MB above. So a
/// larger buffer is counted as banks of 1 MB, without wires between them.
double sram_byte_j(double bytes);

/// What a chip does in some time.
struct ChipActivity {
  double macs = 0, vector_operations = 0;
  double register_bytes = 0;   ///< Read and written, as the next ones.
  double tensor_l2_bytes = 0;  ///< Of tensor cores' L2.
  double vector_l2_bytes = 0;
  double global_buffer_bytes = 0;
  double hbm_bytes = 0;
  double link_bytes = 0;
  double seconds = 0;

  ChipActivity& operator+=(const ChipActivity& more);
  friend ChipActivity operator*(double times, const ChipActivity& one);
};

/// Energy by where it goes.
struct ChipEnergy {
  double arithmetic_j = 0;
  double on_chip_j = 0;  ///< Registers, L2 and global buffer.
  double hbm_j = 0, link_j = 0;
  double static_j = 0;
  double total_j() const { return arithmetic_j + on_chip_j + hbm_j + link_j + static_j; }
};
ChipEnergy chip_energy(const Accelerator& chip, const EnergyFigures& figures,
                       const ChipActivity& activity);

/// Of registers, read and written, for each multiply-accumulate: as many words as a unit's
/// registers hand over in a cycle.
double register_bytes_per_mac(const Accelerator& chip);

/// A second in which every unit and every level is busy in every cycle.
ChipActivity busiest_second(const Accelerator& chip);

/// What that takes, which no schedule exceeds: 208 W of Phaze's TPUv4 template (TPU v4 drew 192 W
/// at most).
double peak_power_w(const Accelerator& chip, const EnergyFigures& figures);

}  // namespace braid
