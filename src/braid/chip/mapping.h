#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "braid/chip/chip_work.h"
#include "braid/chip/dataflow_chip.h"
#include "braid/chip/tile_curve.h"

namespace braid {

/// Which of a partition's compute, memory and network times hide behind each other.
enum class PartitionOverlap : std::uint8_t {
  all,             ///< max(compute, memory, network): the paper's equation.
  compute_memory,  ///< max(compute, memory) + network.
  none             ///< Their sum.
};

enum class PartitionBound : std::uint8_t { compute, memory, network };
std::string_view name_of(PartitionBound bound);

/// What a mapping is charged.
struct MappingRules {
  PartitionOverlap overlap = PartitionOverlap::all;
  double compute_fraction = 0.9;  ///< Of a tile's peak that a busy tile sustains.
  /// Tiles go to kernels in whole numbers, kernels of a partition run side by side, and what does
  /// not fill a tile is lost. False: a partition's operations over the whole chip's rate.
  bool whole_tiles = true;
  /// Parameters are read from DRAM whenever their partition runs, and a kernel whose parameters are
  /// cut into parts reads its inputs for each. False: neither is charged.
  bool weight_traffic = true;
  /// A tensor with several readers is written once and read once per partition, and lies in DRAM
  /// once. False: once for each reader.
  bool share_tensors = true;
  bool sram_limit = true;  ///< Partitions of two or more kernels must fit on chip.
  /// All forward kernels run in partitions before those of the backward ones: what lies between are
  /// the other layers.
  bool separate_passes = true;
  friend bool operator==(const MappingRules&, const MappingRules&) = default;
};

/// The rules of DFModel's published runs: operations over 0.9 of the chip's peak, tensors charged
/// per reader, parameters not charged.
MappingRules dfmodel_rules(PartitionOverlap overlap);

/// Partitions run one after the other; the kernels of one are on the chip together.
struct Mapping {
  /// For each kernel; tensors go to the same or a later partition, and none is empty.
  std::vector<std::int32_t> partition_of;
  /// For each kernel; empty: as many as make its partition fastest.
  std::vector<std::int64_t> tiles;
  friend bool operator==(const Mapping&, const Mapping&) = default;
};

/// One kernel per partition, in topological order, the forward pass first.
Mapping kernel_by_kernel(const ChipWork& work);

struct PartitionCost {
  double compute_s = 0, memory_s = 0, network_s = 0;
  double time_s = 0;
  PartitionBound bound = PartitionBound::compute;  ///< The longest of the three.
  double flops = 0;
  double dram_traffic_bytes = 0;
  double network_bytes = 0;
  double sram_bytes = 0;  ///< Tiles of tensors, and parameters.
  double dram_bytes = 0;  ///< In use while it runs.
  std::int64_t tiles = 0;
  double parts = 1;  ///< Into which a kernel alone is cut, one after the other, to fit on chip.
};

struct MappingCost {
  std::vector<PartitionCost> partitions;
  std::vector<std::int64_t> tiles;       ///< For each kernel; empty unless rules have whole tiles.
  double time_s = 0;                     ///< Of a micro-batch: the partitions' sum.
  std::optional<std::string> violation;  ///< Why the mapping cannot be, if so.
};

/// Time and memory of a mapping (DFModel, section V-B; equations 1 to 4 for which tensors stay,
/// cross and wait). A partition computes for the sum of its kernels' operations over the chip's
/// rate or, with whole tiles, as long as its slowest kernel; moves the tensors that have exactly
/// one end in it and what its kernels fetch besides; sends their messages. SRAM holds two tiles of
/// a tensor that crosses, ChipTensor::buffers of one that stays, and the parameters. A kernel alone
/// may be cut into equal parts that fit. DRAM holds resident_bytes and live_copies of every tensor
/// from its writer's to its reader's partition. Needs a partition in [0, kernels) for each kernel.
/// `curves` of all kernels, where they are known already, instead of tile_curve()'s.
/// O(kernels + tensors) and the tile curves.
MappingCost evaluate_mapping(const ChipWork& work, const DataflowChip& chip, const Mapping& mapping,
                             const MappingRules& rules, std::span<const TileCurve> curves = {});

}  // namespace braid
