#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "braid/chip/dataflow_chip.h"
#include "braid/chip/kernel_graph.h"
#include "braid/chip/mapping.h"
#include "braid/dataflow/fabric.h"

namespace braid {

enum class DataflowWorkload : std::uint8_t {
  layers,          ///< A model of equal layers; the graph is one of them, or the whole model.
  recommendation,  ///< DLRM: data parallel with tables over all chips.
  linpack,         ///< HPL: the matrix over a grid of chips, an iteration per kernel.
  fourier          ///< FFT: steps over all chips.
};

/// What is computed, beside the graph.
struct DataflowJob {
  DataflowWorkload workload = DataflowWorkload::layers;
  std::int64_t layers = 1;
  bool whole_model = false;       ///< The graph is all layers, whose kernels go to stages.
  std::int64_t hidden = 0;        ///< Width of what passes between layers.
  std::int64_t seq_len = 0;       ///< Tokens of a sample.
  std::int64_t global_batch = 1;  ///< Samples.
  std::int64_t micro_batch = 1;
  std::int64_t tile = 1;      ///< Tokens (of the tiled dimension) on chip at once.
  double resident_bytes = 0;  ///< Of the whole machine: tables, the matrix, the signal.
  friend bool operator==(const DataflowJob&, const DataflowJob&) = default;
};

/// Prices in USD and watts, per unit of the published inputs: a GB/s of links, of switch ports and
/// of DRAM, an accelerator.
struct DataflowPrices {
  double link_usd = 0, switch_usd = 0, dram_usd = 0, chip_usd = 0;
  double link_w[3] = {0, 0, 0};
  double switch_w = 0, dram_w = 0, chip_w = 0;
};

/// A published input of DFModel: a graph, a machine, and how to run one on the other.
struct DataflowSetup {
  KernelGraph graph;
  DataflowChip chip;
  Fabric fabric;
  std::int64_t chips = 1;
  DataflowJob job;
  DataflowPrices prices;
  bool kernel_by_kernel = false;
  /// As the file has it; 0: any number. Of no effect but that one partition may hold both passes.
  std::int64_t most_partitions = 0;
  MappingRules rules;  ///< As the file asks for: dfmodel_rules with its overlap.
  double all_reduce_passes = 2;
};

/// Reads a setup in protobuf text as published with DFModel (any of its versions: `miscellany`,
/// `execution` or `training`). GB/s are 1e9 bytes/s, GHz 1e9 Hz. One size of the network may be
/// missing or 0, and is what the others leave of num_chip. Throws Error with file, line and key for
/// whatever cannot be: syntax, unknown or missing keys, words that are not known, numbers out of
/// range, ids that are not 1, 2, …, cycles, a network whose product is not num_chip.
DataflowSetup parse_dataflow_setup(std::string_view text, const std::string& file);
DataflowSetup read_dataflow_setup(const std::string& path);

}  // namespace braid
