#pragma once

#include <array>
#include <vector>

#include "braid/dataflow/sharding.h"

namespace braid {

/// What the chips that divide kernels send to each other.
struct ShardMessage {
  double bytes = 0;  ///< Of the tensors, or shares of them, that collectives work on.
  double seconds = 0;
};

/// How a tensor lies along each of shard_axes(), the last for those that follow as well. Parts
/// along several axes are nested in the axes' order: a second axis that splits rows takes parts of
/// the rows that the first left.
using TensorLayout = std::array<ShardLayout, 3>;

/// The layout that a kernel sharded like this leaves its output in, and wants `writer`'s in.
TensorLayout output_layout(const Kernel& kernel, const KernelDims& dims);
TensorLayout input_layout(const Kernel& reader, const KernelDims& dims, const Kernel& writer,
                          double word_bytes);

/// The sum of partial outputs of a kernel whose K is sharded: over all chips, or along each axis
/// that divides K, of what the other axes leave of the output.
ShardMessage reduction(const Kernel& kernel, const KernelDims& dims, double word_bytes,
                       const std::vector<FabricDimension>& axes, const Fabric& fabric,
                       const CollectiveRules& rules);

/// Changes of the layout of a tensor of so many bytes. Where both layouts are one along all axes, a
/// collective of all chips. Else the steps of least time (Floyd 1962), each along one axis and of
/// what the other axes leave of the tensor: parts are taken of what lies whole, which is free; rows
/// and columns change places (all-to-all); what is split is made whole (all-gather). Only the
/// innermost split of rows or columns is made or undone, so that parts stay nested. `axes` are
/// those of `fabric`, which must outlive this as must `rules`.
/// Cost: 27^axes operations, once, when layouts first differ between axes.
class LayoutChanges {
 public:
  LayoutChanges(double bytes, const std::vector<FabricDimension>& axes, const Fabric& fabric,
                const CollectiveRules& rules);

  ShardMessage of(const TensorLayout& from, const TensorLayout& to);

 private:
  void find_steps();

  double bytes_;
  const std::vector<FabricDimension>& axes_;
  const Fabric& fabric_;
  const CollectiveRules& rules_;
  std::vector<ShardMessage> least_;  ///< By the layout before, then after; empty until needed.
};

}  // namespace braid
