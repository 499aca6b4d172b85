#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "braid/chip/chip_share.h"
#include "braid/chip/chip_work.h"
#include "braid/chip/kernel_graph.h"
#include "braid/dataflow/fabric.h"

namespace braid {

/// How a tensor lies on the chips that divide a kernel: whole on each, or split by rows (outer or
/// M) or by columns (N).
enum class ShardLayout : std::uint8_t { whole, rows, columns };

/// What of a kernel the tensor-parallel chips divide: one of its dimensions, or one along each of
/// up to three dimensions of the network (shard_axes), the last for those that follow as well.
struct KernelDims {
  std::array<KernelDim, 3> along{};

  // NOLINTNEXTLINE(google-explicit-constructor): one dimension is sharded along all.
  KernelDims(KernelDim all = KernelDim::none) : along{all, all, all} {}
  bool is_one() const { return along[0] == along[1] && along[1] == along[2]; }
  friend bool operator==(const KernelDims&, const KernelDims&) = default;
};

/// For each kernel what the tensor-parallel chips divide.
using Sharding = std::vector<KernelDims>;

/// The network's dimensions that divide kernels, those of one chip left out. One that stands for
/// all where they are more than three or joined otherwise than as a product (rail-only networks).
std::vector<FabricDimension> shard_axes(const Fabric& fabric);

/// The layout that a kernel sharded along `dim` leaves its output in (DFModel, figure 4).
ShardLayout output_layout(const Kernel& kernel, KernelDim dim);
/// The layout that it wants the tensor in that `writer` makes.
ShardLayout input_layout(const Kernel& reader, KernelDim dim, const Kernel& writer,
                         double word_bytes);

/// The dimensions that a kernel may be sharded along: not one of size 1 nor the tiled one; a kernel
/// with weights must be sharded; outer > 1 leaves only that. Falls back to `none` where nothing
/// else is left.
std::vector<KernelDim> sharding_options(const Kernel& kernel);

/// Likewise along each of `axes` dimensions of the network by itself; outer > 1 must be sharded
/// along one of them, and M then along none, since parts of both would not be rows that lie
/// together.
std::vector<KernelDims> grid_options(const Kernel& kernel, std::size_t axes);

/// What a sharding of kernels is judged by.
struct ShardingGoal {
  /// As the published program does: fewest bytes sent (all-reduces of kernels sharded along K, and
  /// changes of layout), whatever the network; of those, fewest changes of layout, then fewest
  /// elementwise kernels sharded. False: least time of the same messages on the fabric plus the
  /// time of elementwise work at `elementwise_s_per_flop` and of boundary tensors at
  /// `s_per_byte`.
  bool bytes_only = true;
  double elementwise_s_per_flop = 0;
  double s_per_byte = 0;
  /// The time of GEMMs as well; 0: those that need not be sharded are as good whole.
  double matrix_s_per_flop = 0;
  /// Kernels may divide another dimension along each dimension of the network: in time alone.
  bool by_axis = false;
};

struct ShardingResult {
  Sharding dims;
  double cost = 0;      ///< Bytes or seconds, as the goal has it.
  bool optimal = true;  ///< False when the frontier was too wide and a local search took over.
};

/// The best sharding (with goal.by_axis of grid_options(), else of sharding_options()), exact by
/// elimination of one kernel after the other (bucket elimination over the pairwise costs, in an
/// order of small frontiers); local search past `most_entries` table entries.
ShardingResult find_sharding(const KernelGraph& graph, const Fabric& fabric,
                             const CollectiveRules& rules, const ShardingGoal& goal,
                             std::size_t most_entries = std::size_t{1} << 20);

/// What one chip does under a sharding among the chips of the fabric's tensor dimensions: sizes
/// rounded up to whole rows and columns; kernels sharded along K reduce their output over those
/// chips, or over those along the axes that divide K; gradients are reduced over the data-parallel
/// ones, spread over `micro_batches`. `tile` is the number of rows of the tiled dimension held at
/// once; 0: all.
ChipWork shard_kernels(const KernelGraph& graph, const Sharding& dims, const Fabric& fabric,
                       const CollectiveRules& rules, double micro_batches, std::int64_t tile);

/// Sizes of one kernel under a sharding among the chips of `axes`.
ShardShape shard_shape(const Kernel& kernel, const KernelDims& dims,
                       std::span<const FabricDimension> axes);

/// What kernels are sharded by and priced with.
struct ShardingJob {
  const KernelGraph& graph;
  const Fabric& fabric;
  const CollectiveRules& rules;
  double micro_batches = 1;
  std::int64_t tile = 0;              ///< Rows of the tiled dimension held at once; 0: all.
  std::vector<FabricDimension> axes;  ///< shard_axes() of the fabric.
};

/// One kernel as one chip runs it with its own messages, and what it writes.
struct KernelShare {
  ChipKernel kernel;
  ShareOutput output;
  double message_s = 0;  ///< Its own messages, without the sum of partial outputs.
};
KernelShare kernel_share(const ShardingJob& job, const Kernel& kernel, const KernelDims& dims);

/// What a kernel may be sharded along: sharding_options(), or grid_options() where `by_axis` says
/// so; none where no dimension of the network divides kernels.
std::vector<KernelDims> option_dims(const Kernel& kernel, bool by_axis, std::size_t axes);

}  // namespace braid
