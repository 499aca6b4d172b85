#include "braid/chip/chip_share.h"

#include <algorithm>
#include <utility>

namespace braid {

ChipKernel chip_kernel(const Kernel& kernel, const ShardShape& shape, double word_bytes) {
  ChipKernel mine;
  mine.name = kernel.name;
  mine.matrix = kernel.matrix;
  mine.backward = kernel.backward;
  mine.rows = shape.outer * shape.m;
  mine.depth = shape.k;
  mine.columns = shape.n;
  const double products = static_cast<double>(mine.rows) * static_cast<double>(shape.k);
  mine.flops = products * static_cast<double>(shape.n) * (kernel.matrix ? 2 : 1);
  mine.weight_bytes = kernel.weights ? products * word_bytes : kernel.gradient_bytes;
  mine.dram_bytes = kernel.dram_bytes;
  mine.pinned_partition = kernel.pinned_partition;
  return mine;
}

ShareOutput share_output(const Kernel& kernel, const ShardShape& shape, double word_bytes,
                         std::int64_t tile) {
  const double numbers = static_cast<double>(shape.outer * shape.m) * static_cast<double>(shape.n);
  ShareOutput output;
  output.bytes = kernel.writes_out ? 0 : numbers * word_bytes;
  double tiles = 1;
  if (tile > 0 && kernel.tiled == KernelDim::n) {
    tiles = static_cast<double>(ceil_div(shape.n, std::min(tile, shape.n)));
  }
  if (tile > 0 && kernel.tiled == KernelDim::m) {
    tiles = static_cast<double>(ceil_div(shape.m, std::min(tile, shape.m)));
  }
  output.tile_bytes = output.bytes / tiles;
  return output;
}

std::vector<ChipTensor> chip_tensors(const KernelGraph& graph,
                                     std::span<const ShareOutput> outputs) {
  const std::vector<std::int32_t> levels = waiting_levels(graph);
  std::vector<ChipTensor> tensors;
  tensors.reserve(graph.tensors.size());
  for (const KernelTensor& tensor : graph.tensors) {
    const auto from = static_cast<std::size_t>(tensor.from);
    const auto to = static_cast<std::size_t>(tensor.to);
    ChipTensor mine;
    mine.from = tensor.from;
    mine.to = tensor.to;
    mine.bytes = outputs[from].bytes;
    mine.tile_bytes = outputs[from].tile_bytes;
    mine.buffers = levels[to] - levels[from] + 1;
    tensors.push_back(mine);
  }
  return tensors;
}

ChipWork whole_work(const KernelGraph& graph, std::int64_t tile) {
  ChipWork work;
  std::vector<ShareOutput> outputs;
  work.kernels.reserve(graph.kernels.size());
  outputs.reserve(graph.kernels.size());
  for (const Kernel& kernel : graph.kernels) {
    const ShardShape shape{kernel.outer, kernel.m, kernel.k, kernel.n};
    work.kernels.push_back(chip_kernel(kernel, shape, graph.word_bytes));
    outputs.push_back(share_output(kernel, shape, graph.word_bytes, tile));
  }
  work.tensors = chip_tensors(graph, outputs);
  return work;
}

}  // namespace braid
