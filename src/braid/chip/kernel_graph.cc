#include "braid/chip/kernel_graph.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/text.h"

namespace braid {
namespace {

constexpr std::int64_t kLargestSize = std::int64_t{1} << 40;
constexpr std::size_t kMostKernels = 1 << 16;
constexpr double kMostWork = 4.6e18;  // 2^62

bool is_size(double bytes) { return std::isfinite(bytes) && bytes >= 0; }

void check_kernel(const Kernel& kernel, const std::string& file) {
  const std::string key = "kernel " + in_quotes(kernel.name);
  for (const std::int64_t size : {kernel.outer, kernel.m, kernel.k, kernel.n}) {
    if (size < 1 || size > kLargestSize) {
      throw Error({file, 0, key}, fmt::format("dimension {} is not in [1, 2^40]", size));
    }
  }
  if (kernel_flops(kernel) > 2 * kMostWork || weight_elements(kernel) > kMostWork) {
    throw Error({file, 0, key}, "the product of its dimensions is above 2^62");
  }
  if (!is_size(kernel.dram_bytes) || !is_size(kernel.first_input_bytes) ||
      !is_size(kernel.gradient_bytes)) {
    throw Error({file, 0, key}, "a size in bytes is negative or not finite");
  }
  for (const KernelMessage& message : kernel.messages) {
    if (!is_size(message.bytes)) {
      throw Error({file, 0, key}, "a message's size is negative or not finite");
    }
  }
}

}  // namespace

double kernel_flops(const Kernel& kernel) {
  const double products = static_cast<double>(kernel.k) * output_elements(kernel);
  return kernel.matrix ? 2 * products : products;
}

double output_elements(const Kernel& kernel) {
  return static_cast<double>(kernel.outer) * static_cast<double>(kernel.m) *
         static_cast<double>(kernel.n);
}

double weight_elements(const Kernel& kernel) {
  if (!kernel.weights) return 0;
  return static_cast<double>(kernel.outer) * static_cast<double>(kernel.m) *
         static_cast<double>(kernel.k);
}

std::vector<std::int32_t> kernel_levels(std::size_t kernels,
                                        const std::vector<KernelTensor>& tensors) {
  std::vector<std::vector<std::int32_t>> readers(kernels);
  std::vector<std::int32_t> waiting(kernels, 0), level(kernels, 0), ready;
  for (const KernelTensor& tensor : tensors) {
    readers[static_cast<std::size_t>(tensor.from)].push_back(tensor.to);
    ++waiting[static_cast<std::size_t>(tensor.to)];
  }
  for (std::size_t i = 0; i < kernels; ++i) {
    if (waiting[i] == 0) ready.push_back(static_cast<std::int32_t>(i));
  }
  std::size_t done = 0;
  while (done < ready.size()) {
    const auto at = static_cast<std::size_t>(ready[done++]);
    for (const std::int32_t reader : readers[at]) {
      const auto to = static_cast<std::size_t>(reader);
      level[to] = std::max(level[to], level[at] + 1);
      if (--waiting[to] == 0) ready.push_back(reader);
    }
  }
  if (done != kernels) level.clear();
  return level;
}

std::vector<std::int32_t> waiting_levels(const KernelGraph& graph) {
  std::vector<std::int32_t> levels = kernel_levels(graph.kernels.size(), graph.tensors);
  std::vector<std::size_t> late;
  for (std::size_t i = 0; i < graph.kernels.size(); ++i) {
    if (graph.kernels[i].late) late.push_back(i);
  }
  // Readers before writers: a late kernel may read another.
  std::stable_sort(late.begin(), late.end(),
                   [&](std::size_t a, std::size_t b) { return levels[a] > levels[b]; });
  for (const std::size_t kernel : late) {
    std::int32_t first = std::numeric_limits<std::int32_t>::max();
    for (const KernelTensor& tensor : graph.tensors) {
      if (static_cast<std::size_t>(tensor.from) != kernel) continue;
      first = std::min(first, levels[static_cast<std::size_t>(tensor.to)]);
    }
    if (first < std::numeric_limits<std::int32_t>::max()) levels[kernel] = first - 1;
  }
  return levels;
}

void check_kernel_graph(const KernelGraph& graph, const std::string& file) {
  if (graph.kernels.empty()) throw Error({file, 0, "dataflow_graph"}, "it has no kernels");
  if (graph.kernels.size() > kMostKernels) {
    throw Error({file, 0, "dataflow_graph"}, "it has more than 65536 kernels");
  }
  if (!(graph.word_bytes > 0) || graph.word_bytes > 64) {
    throw Error({file, 0, "word"}, fmt::format("{} is no size of a number", graph.word_bytes),
                "give 1, 2, 4 or 8 bytes");
  }
  for (const Kernel& kernel : graph.kernels) check_kernel(kernel, file);
  const auto kernels = static_cast<std::int32_t>(graph.kernels.size());
  for (const KernelTensor& tensor : graph.tensors) {
    if (tensor.from < 0 || tensor.from >= kernels || tensor.to < 0 || tensor.to >= kernels) {
      throw Error({file, 0, "connections"},
                  fmt::format("{} -> {} names no kernel", tensor.from + 1, tensor.to + 1),
                  fmt::format("kernels are numbered from 1 to {}", kernels));
    }
  }
  for (const KernelTensor& tensor : graph.tensors) {
    const Kernel& from = graph.kernels[static_cast<std::size_t>(tensor.from)];
    const Kernel& to = graph.kernels[static_cast<std::size_t>(tensor.to)];
    if (from.backward && !to.backward) {
      throw Error({file, 0, "connections"},
                  fmt::format("{} of the forward pass reads {} of the backward pass",
                              in_quotes(to.name), in_quotes(from.name)),
                  "correct fwd_bwd");
    }
  }
  if (kernel_levels(graph.kernels.size(), graph.tensors).empty()) {
    throw Error({file, 0, "connections"}, "they form a cycle");
  }
}

}  // namespace braid
