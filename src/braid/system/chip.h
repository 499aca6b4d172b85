#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "braid/base/dtype.h"
#include "braid/chip/accelerator/accelerator_design.h"

namespace braid {

/// Where a figure comes from: a document, a measurement, or an assumption of ours.
struct Provenance {
  std::string key;     ///< The field it speaks of, e.g. `peak.bf16`.
  std::string source;  ///< Citation or reason.
  bool assumed = false;
  friend bool operator==(const Provenance&, const Provenance&) = default;
};

/// Peak arithmetic rate for operands of one type, dense.
struct PeakRate {
  Dtype dtype = Dtype::bf16;
  double matmul_flops_per_s = 0;
  friend bool operator==(const PeakRate&, const PeakRate&) = default;
};

/// A level of the memory hierarchy.
struct Memory {
  std::string name;        ///< "HBM3", "L2", "SRAM", "host".
  double bytes = 0;        ///< Capacity per device.
  double bytes_per_s = 0;  ///< Bandwidth per device; 0: not known (of a chip without peaks).
  friend bool operator==(const Memory&, const Memory&) = default;
};

/// How near real kernels come to the chip's peaks. Every field has a meaning and a unit; defaults
/// are assumptions and are listed as such in Chip::provenance.
struct Efficiency {
  double matmul_peak_fraction =
      0.8;  ///< Of peak, for large GEMMs (clock under load, issue limits).
  /// See narrow_share(); 0: as wider formats.
  double narrow_matmul_peak_fraction = 0;
  double vector_peak_fraction = 0.6;     ///< Of the vector rate, pointwise and reductions.
  double attention_peak_fraction = 0.6;  ///< Of the matmul peak, fused attention.
  double memory_peak_fraction = 0.85;    ///< Of memory bandwidth, large transfers.
  double memory_half_bytes = 2e6;        ///< Transfer size at which half of that is achieved.
  double kernel_launch_s = 4e-6;         ///< Device time lost per kernel.
  /// Host time that the trainer spends on issuing one operator's pass; kernels wait where the host
  /// takes longer than the device. 0: compiled or captured.
  double host_operator_s = 0;
  /// Share of a collective's time that is lost although it runs behind kernels: it takes compute
  /// units, cache and memory bandwidth from them. 0: transfers have engines of their own.
  double overlap_loss = 0;
  int tile_m = 128, tile_n = 128, tile_k = 64;  ///< Tile of one compute unit's GEMM.

  /// Of the peak of a format narrower than 16 bits, for large GEMMs in it.
  double narrow_share() const {
    return narrow_matmul_peak_fraction > 0 ? narrow_matmul_peak_fraction : matmul_peak_fraction;
  }
  friend bool operator==(const Efficiency&, const Efficiency&) = default;
};

/// How a chip runs the operators of a layer.
enum class ChipExecution : std::uint8_t {
  kernels,   ///< A kernel at a time, each over the whole chip, through main memory.
  dataflow,  ///< Partitions of several kernels side by side, which pass tensors through on_chip.
  cores,     ///< Operators side by side on an accelerator's tensor and vector cores, or on all.
  /// As `cores`, but a pass takes only what no schedule stays below, on this accelerator or one
  /// that is nowhere better: for bounds on families of accelerators. No file has it.
  core_bounds
};

/// What people call a chip, which is also what trainers are written for.
enum class ChipKind : std::uint8_t { gpu, tpu, other };

struct Chip {
  std::string name;  ///< Catalogue name: `h100-sxm`.
  std::string description;
  ChipKind kind = ChipKind::gpu;
  std::vector<PeakRate> peaks;
  double vector_flops_per_s = 0;  ///< f32 outside the matrix units.
  int compute_units = 1;          ///< SMs, CUs, cores: matmul tiles are dealt to them in waves.
  /// CUDA's version of an NVIDIA GPU, such as 8.0; see also compute_capability().
  std::optional<double> compute_capability;
  Memory memory;                  ///< Main memory: HBM, GDDR, DDR.
  std::optional<Memory> on_chip;  ///< Shared last-level SRAM.
  std::optional<Memory> host;  ///< Host memory reachable from the device, its share and bandwidth.
  double reserved_bytes =
      0;  ///< Main memory that no plan may use: context, libraries, fragmentation.
  ChipExecution execution = ChipExecution::kernels;
  std::optional<double> power_w;
  std::optional<double> price_usd;
  /// What the chip is made of, where it is an instance of the accelerator template: its other
  /// figures follow from that (accelerator_chip.h).
  std::optional<AcceleratorDesign> accelerator;
  Efficiency efficiency;
  std::vector<Provenance> provenance;

  friend bool operator==(const Chip&, const Chip&) = default;
};

/// Peak dense rate for operands of `dtype`; nullopt when the chip does not list it (no other type's
/// figure is ever used instead).
std::optional<double> matmul_peak(const Chip& chip, Dtype dtype);

/// The compute capability of a chip; of a GPU whose file does not say it, 7.0 where it lists f16
/// and no bf16, whose GEMMs came with 8.0. nullopt where nothing is known of one.
std::optional<double> compute_capability(const Chip& chip);

/// Whether what a layer takes is found by mapping it onto the chip, not operator by operator.
inline bool maps_layers(const Chip& chip) { return chip.execution != ChipExecution::kernels; }

/// Main memory that a plan may fill: capacity less the reserve.
inline double usable_bytes(const Chip& chip) { return chip.memory.bytes - chip.reserved_bytes; }

}  // namespace braid
