#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "braid/chip/chip_work.h"
#include "braid/chip/kernel_graph.h"

namespace braid {

/// Sizes of one chip's share of a kernel.
struct ShardShape {
  std::int64_t outer = 1, m = 1, k = 1, n = 1;
};

/// A kernel of these sizes as one chip runs it, without its messages.
ChipKernel chip_kernel(const Kernel& kernel, const ShardShape& shape, double word_bytes);

/// What a chip's share of a kernel writes.
struct ShareOutput {
  double bytes = 0;       ///< 0 where it goes to DRAM.
  double tile_bytes = 0;  ///< Of `tile` rows of the tiled dimension; 0 rows: all.
};
ShareOutput share_output(const Kernel& kernel, const ShardShape& shape, double word_bytes,
                         std::int64_t tile);

/// The graph's tensors between kernels with these outputs, as they lie on one chip where no layout
/// changes. Needs a graph without cycles.
std::vector<ChipTensor> chip_tensors(const KernelGraph& graph,
                                     std::span<const ShareOutput> outputs);

/// What a chip does that has all kernels to itself, `tile` rows of the tiled dimension at once.
/// Nothing is sent. Linear time.
///
///     ChipWork work = whole_work(kernels_of(layer, 0, 1, 2, GraphPasses::forward), 1);
///     MappingOutcome outcome = map_kernels(work, chip, rules, budget);
ChipWork whole_work(const KernelGraph& graph, std::int64_t tile);

}  // namespace braid
