#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace braid {

/// A kernel as one chip runs it: its share of the whole.
struct ChipKernel {
  std::string name;
  bool matrix = true;
  bool backward = false;     ///< Backward kernels read of both passes, forward ones of theirs.
  std::int64_t rows = 1;     ///< `outer` times M.
  std::int64_t depth = 1;    ///< K.
  std::int64_t columns = 1;  ///< N.
  double flops = 0;
  double weight_bytes = 0;   ///< Parameters that it holds on chip, or gradients of them.
  double dram_bytes = 0;     ///< Further DRAM traffic.
  double network_s = 0;      ///< Its messages.
  double network_bytes = 0;  ///< Their size, for the intensity; not what the links carry.
  std::int32_t pinned_partition = -1;
  friend bool operator==(const ChipKernel&, const ChipKernel&) = default;
};

/// A tensor as it lies on one chip.
struct ChipTensor {
  std::int32_t from = 0, to = 0;
  double bytes = 0;       ///< For a whole micro-batch.
  double tile_bytes = 0;  ///< Of one tile: what a pipeline inside the chip holds at once.
  double buffers = 2;     ///< Tiles held when both ends are in one partition.
  double network_s = 0;   ///< Conversion from the writer's to the reader's layout, at the reader.
  double network_bytes = 0;
  friend bool operator==(const ChipTensor&, const ChipTensor&) = default;
};

/// What one chip does for one micro-batch: a directed acyclic graph. Times in seconds, sizes in
/// bytes. The tensors' order is free; the kernels' numbers need not be topological.
struct ChipWork {
  std::vector<ChipKernel> kernels;
  std::vector<ChipTensor> tensors;
  double resident_bytes = 0;  ///< Of DRAM, throughout: parameters of all layers and their state.
  double live_copies = 1;     ///< Micro-batches' worth of each tensor that waits in DRAM.
  friend bool operator==(const ChipWork&, const ChipWork&) = default;
};

}  // namespace braid
