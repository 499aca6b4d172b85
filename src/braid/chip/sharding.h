#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "braid/chip/chip_work.h"
#include "braid/chip/fabric.h"
#include "braid/chip/kernel_graph.h"

namespace braid {

/// How a tensor lies on the chips that divide a kernel: whole on each, or split by rows (outer or
/// M) or by columns (N).
enum class ShardLayout : std::uint8_t { whole, rows, columns };

/// For each kernel the dimension that the tensor-parallel chips divide.
using Sharding = std::vector<KernelDim>;

/// The layout that a kernel divided along `dim` leaves its output in (DFModel, figure 4).
ShardLayout output_layout(const Kernel& kernel, KernelDim dim);
/// The layout that it wants the tensor in that `writer` makes.
ShardLayout input_layout(const Kernel& reader, KernelDim dim, const Kernel& writer,
                         double word_bytes);

/// The dimensions that a kernel may be divided along: not one of size 1 nor the tiled one; a kernel
/// with weights must be divided; outer > 1 leaves only that. Falls back to `none` where nothing
/// else is left.
std::vector<KernelDim> sharding_options(const Kernel& kernel);

/// What a division of kernels is judged by.
struct ShardingGoal {
  /// As the published program does: fewest bytes sent (all-reduces of kernels divided along K, and
  /// changes of layout), whatever the network; of those, fewest changes of layout, then fewest
  /// elementwise kernels divided. False: least time of the same messages on the fabric plus the
  /// time of elementwise work at `elementwise_s_per_flop` and of boundary tensors at
  /// `s_per_byte`.
  bool bytes_only = true;
  double elementwise_s_per_flop = 0;
  double s_per_byte = 0;
};

struct ShardingResult {
  Sharding dims;
  double cost = 0;      ///< Bytes or seconds, as the goal has it.
  bool optimal = true;  ///< False when the frontier was too wide and a local search took over.
};

/// The best division, exact by elimination of one kernel after the other (bucket elimination over
/// the pairwise costs, in an order of small frontiers); local search past `most_entries` table
/// entries.
ShardingResult find_sharding(const KernelGraph& graph, const Fabric& fabric,
                             const CollectiveRules& rules, const ShardingGoal& goal,
                             std::size_t most_entries = std::size_t{1} << 20);

/// Cost of a given division under a goal.
double sharding_cost(const KernelGraph& graph, const Sharding& dims, const Fabric& fabric,
                     const CollectiveRules& rules, const ShardingGoal& goal);

/// What one chip does under a division among the chips of the fabric's tensor dimensions: sizes
/// rounded up to whole rows and columns; kernels divided along K reduce their output over those
/// chips; gradients are reduced over the data-parallel ones, spread over `micro_batches`. `tile` is
/// the number of rows of the tiled dimension held at once; 0: all.
ChipWork shard_kernels(const KernelGraph& graph, const Sharding& dims, const Fabric& fabric,
                       const CollectiveRules& rules, double micro_batches, std::int64_t tile);

/// Sizes of one kernel under a division among `chips`.
struct ShardShape {
  std::int64_t outer = 1, m = 1, k = 1, n = 1;
};
ShardShape shard_shape(const Kernel& kernel, KernelDim dim, std::int64_t chips);

/// A kernel of these sizes as one chip runs it, without its messages.
ChipKernel chip_kernel(const Kernel& kernel, const ShardShape& shape, double word_bytes);

}  // namespace braid
