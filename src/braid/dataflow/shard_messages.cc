#include "braid/dataflow/shard_messages.h"

#include <algorithm>
#include <cassert>

#include "braid/base/infinity.h"

namespace braid {
namespace {

constexpr std::size_t kLayouts = 3;

bool is_one(const TensorLayout& layout) { return layout[0] == layout[1] && layout[1] == layout[2]; }

std::size_t count_layouts(std::size_t axes) {
  std::size_t count = 1;
  for (std::size_t a = 0; a < axes; ++a) count *= kLayouts;
  return count;
}

std::size_t index_of(const TensorLayout& layout, std::size_t axes) {
  std::size_t index = 0;
  for (std::size_t a = axes; a-- > 0;)
    index = kLayouts * index + static_cast<std::size_t>(layout[a]);
  return index;
}

TensorLayout layout_at(std::size_t index, std::size_t axes) {
  TensorLayout layout{};
  for (std::size_t a = 0; a < axes; ++a) {
    layout[a] = static_cast<ShardLayout>(index % kLayouts);
    index /= kLayouts;
  }
  return layout;
}

/// Whether no later axis splits what this one does.
bool is_innermost(const TensorLayout& layout, std::size_t axis, ShardLayout split,
                  std::size_t axes) {
  if (split == ShardLayout::whole) return true;
  for (std::size_t a = axis + 1; a < axes; ++a) {
    if (layout[a] == split) return false;
  }
  return true;
}

}  // namespace

TensorLayout output_layout(const Kernel& kernel, const KernelDims& dims) {
  TensorLayout layout{};
  for (std::size_t a = 0; a < layout.size(); ++a) layout[a] = output_layout(kernel, dims.along[a]);
  return layout;
}

TensorLayout input_layout(const Kernel& reader, const KernelDims& dims, const Kernel& writer,
                          double word_bytes) {
  TensorLayout layout{};
  for (std::size_t a = 0; a < layout.size(); ++a) {
    layout[a] = input_layout(reader, dims.along[a], writer, word_bytes);
  }
  return layout;
}

ShardMessage reduction(const Kernel& kernel, const KernelDims& dims, double word_bytes,
                       const std::vector<FabricDimension>& axes, const Fabric& fabric,
                       const CollectiveRules& rules) {
  if (axes.empty()) return {};
  const double bytes = output_elements(kernel) * word_bytes;
  if (dims.is_one()) {
    if (dims.along[0] != KernelDim::k) return {};
    return {bytes, all_reduce_s(bytes, FabricRole::tensor, fabric, rules)};
  }
  double left = bytes;
  for (std::size_t a = 0; a < axes.size(); ++a) {
    if (output_layout(kernel, dims.along[a]) != ShardLayout::whole) {
      left /= static_cast<double>(axes[a].size);
    }
  }
  ShardMessage sum;
  for (std::size_t a = 0; a < axes.size(); ++a) {
    if (dims.along[a] != KernelDim::k) continue;
    sum.bytes += left;
    sum.seconds += all_reduce_s(left, axes[a], fabric, rules);
    left /= static_cast<double>(axes[a].size);
  }
  return sum;
}

LayoutChanges::LayoutChanges(double bytes, const std::vector<FabricDimension>& axes,
                             const Fabric& fabric, const CollectiveRules& rules)
    : bytes_(bytes), axes_(axes), fabric_(fabric), rules_(rules) {}

ShardMessage LayoutChanges::of(const TensorLayout& from, const TensorLayout& to) {
  if (from == to || axes_.empty()) return {};
  if (is_one(from) && is_one(to)) {
    if (from[0] == ShardLayout::whole) return {};
    return {bytes_, to[0] == ShardLayout::whole
                        ? all_gather_s(bytes_, FabricRole::tensor, fabric_, rules_)
                        : all_to_all_s(bytes_, FabricRole::tensor, fabric_, rules_)};
  }
  if (least_.empty()) find_steps();
  const std::size_t axes = axes_.size();
  return least_[index_of(from, axes) * count_layouts(axes) + index_of(to, axes)];
}

void LayoutChanges::find_steps() {
  const std::size_t axes = axes_.size();
  assert(axes <= TensorLayout{}.size());
  const std::size_t count = count_layouts(axes);
  least_.assign(count * count, {0, kInfinity});
  for (std::size_t i = 0; i < count; ++i) {
    least_[i * count + i] = {};
    const TensorLayout from = layout_at(i, axes);
    for (std::size_t axis = 0; axis < axes; ++axis) {
      double share = bytes_;
      for (std::size_t a = 0; a < axes; ++a) {
        if (a != axis && from[a] != ShardLayout::whole) share /= static_cast<double>(axes_[a].size);
      }
      for (const ShardLayout last : {ShardLayout::whole, ShardLayout::rows, ShardLayout::columns}) {
        if (last == from[axis] || !is_innermost(from, axis, from[axis], axes) ||
            !is_innermost(from, axis, last, axes)) {
          continue;
        }
        TensorLayout to = from;
        to[axis] = last;
        ShardMessage& step = least_[i * count + index_of(to, axes)];
        if (from[axis] == ShardLayout::whole) {
          step = {};
        } else if (last == ShardLayout::whole) {
          step = {share, all_gather_s(share, axes_[axis], fabric_, rules_)};
        } else {
          step = {share, all_to_all_s(share, axes_[axis], fabric_, rules_)};
        }
      }
    }
  }
  for (std::size_t via = 0; via < count; ++via) {
    for (std::size_t i = 0; i < count; ++i) {
      const ShardMessage first = least_[i * count + via];
      if (first.seconds == kInfinity) continue;
      for (std::size_t j = 0; j < count; ++j) {
        const ShardMessage second = least_[via * count + j];
        ShardMessage& known = least_[i * count + j];
        if (first.seconds + second.seconds < known.seconds) {
          known = {first.bytes + second.bytes, first.seconds + second.seconds};
        }
      }
    }
  }
}

}  // namespace braid
