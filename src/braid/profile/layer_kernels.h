#pragma once

#include <optional>

#include "braid/chip/chip_work.h"
#include "braid/chip/dataflow_chip.h"
#include "braid/chip/graph_kernels.h"
#include "braid/chip/mapping.h"
#include "braid/profile/precision.h"
#include "braid/system/chip.h"

namespace braid {

/// What a layer's share is mapped onto on a dataflow chip, as training runs it: the chip with the
/// bandwidth that is sustained, and the rules of its mappings. Throws Error when the chip lists no
/// peak for the precision or no on-chip memory.
struct LayerKernels {
  LayerKernels(const Precision& precision, const Chip& chip);

  /// The kernels of the layer of a rank's graph (rank_graph.h); none: views alone are no kernels.
  std::optional<ChipWork> work(const Graph& rank, GraphPasses passes) const;

  DataflowChip chip;
  MappingRules rules;
  double word_bytes = 2;
};

}  // namespace braid
