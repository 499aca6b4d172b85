#include "braid/chip/graph_kernels.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/graph/tensor_size.h"

namespace braid {
namespace {

Kernel product(std::string name, std::int64_t outer, std::int64_t m, std::int64_t k, std::int64_t n,
               bool weights) {
  Kernel kernel;
  kernel.name = std::move(name);
  kernel.weights = weights;
  kernel.outer = std::max<std::int64_t>(1, outer);
  kernel.m = std::max<std::int64_t>(1, m);
  kernel.k = std::max<std::int64_t>(1, k);
  kernel.n = std::max<std::int64_t>(1, n);
  kernel.tiled = KernelDim::n;
  return kernel;
}

Kernel elementwise(std::string name, std::int64_t outer, std::int64_t width, std::int64_t rows) {
  Kernel kernel = product(std::move(name), outer, width, 1, rows, false);
  kernel.matrix = false;
  return kernel;
}

/// Turns operators into kernels and remembers which kernel makes which tensor.
class KernelBuilder {
 public:
  KernelBuilder(const Graph& graph, double word_bytes)
      : graph_(graph), writer_(graph.tensors.size(), -1) {
    kernels_.word_bytes = word_bytes;
  }

  void add(const Operator& op) {
    if (op.pass != Pass::forward) {
      throw Error(fmt::format("operator {} is of the backward pass", op.name),
                  "give a forward graph");
    }
    const auto* movement = std::get_if<DataMovement>(&op.kind);
    if (movement != nullptr && movement->view && !op.inputs.empty()) {
      for (const TensorId output : op.outputs) writer_[at(output)] = writer_[at(op.inputs[0])];
      return;
    }
    const std::size_t first = kernels_.kernels.size();
    std::visit([&](const auto& kind) { make(op, kind); }, op.kind);
    const std::size_t last = kernels_.kernels.size() - 1;
    for (std::size_t i = first; i < last; ++i) connect(i, i + 1);
    const bool attends = std::holds_alternative<Attention>(op.kind);
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      if (graph_.tensors[at(op.inputs[i])].is_parameter) continue;
      read(op.inputs[i], attends && i >= 2 ? last : first);
    }
    for (const TensorId output : op.outputs) writer_[at(output)] = static_cast<std::int32_t>(last);
  }

  /// Tensors that operators outside of [first, last) read, and the graph's outputs, are written
  /// out.
  KernelGraph finish(OperatorId first, OperatorId last) {
    std::set<TensorId> leaving(graph_.outputs.begin(), graph_.outputs.end());
    for (std::size_t i = 0; i < graph_.operators.size(); ++i) {
      const auto id = static_cast<OperatorId>(i);
      if (id >= first && id < last) continue;
      leaving.insert(graph_.operators[i].inputs.begin(), graph_.operators[i].inputs.end());
    }
    for (const TensorId tensor : leaving) {
      if (writer_[at(tensor)] < 0) continue;
      kernels_.kernels[static_cast<std::size_t>(writer_[at(tensor)])].dram_bytes +=
          elements_of(graph_.tensors[at(tensor)]) * kernels_.word_bytes;
    }
    return std::move(kernels_);
  }

 private:
  static std::size_t at(TensorId tensor) { return static_cast<std::size_t>(tensor); }

  void push(Kernel kernel) { kernels_.kernels.push_back(std::move(kernel)); }

  void connect(std::size_t from, std::size_t to) {
    kernels_.tensors.push_back({static_cast<std::int32_t>(from), static_cast<std::int32_t>(to)});
  }

  void read(TensorId tensor, std::size_t kernel) {
    const std::int32_t writer = writer_[at(tensor)];
    if (writer < 0) {
      kernels_.kernels[kernel].dram_bytes +=
          elements_of(graph_.tensors[at(tensor)]) * kernels_.word_bytes;
    } else if (std::pair(writer, static_cast<std::int32_t>(kernel)) != latest_) {
      connect(static_cast<std::size_t>(writer), kernel);
      latest_ = {writer, static_cast<std::int32_t>(kernel)};
    }
  }

  void make(const Operator& op, const MatMul& kind) {
    push(product(op.name, kind.batch, kind.n, kind.k, kind.m, kind.weight));
  }
  void make(const Operator& op, const Attention& kind) {
    const std::int64_t heads = kind.samples * kind.heads;
    push(product(op.name + ".scores", heads, kind.kv_len, kind.qk_dim, kind.q_len, false));
    push(elementwise(op.name + ".softmax", heads, kind.kv_len, kind.q_len));
    push(product(op.name + ".values", heads, kind.v_dim, kind.kv_len, kind.q_len, false));
  }
  void make(const Operator& op, const Convolution& kind) {
    const std::int64_t groups = std::max<std::int64_t>(1, kind.groups);
    push(product(op.name, groups, kind.out_channels / groups,
                 kind.in_channels / groups * kind.kernel_positions,
                 kind.samples * kind.out_positions, true));
  }
  void make(const Operator& op, const Recurrent& kind) {
    push(product(op.name, 1, kind.n, kind.k, kind.steps * kind.rows, true));
  }
  void make(const Operator& op, const MoeRouter& kind) {
    push(product(op.name, 1, kind.experts, kind.hidden, kind.tokens, true));
  }
  void make(const Operator& op, const MoeExperts& kind) {
    const std::int64_t rows = ceil_div(kind.tokens * kind.top_k, kind.experts);
    push(product(op.name + ".up", kind.experts, kind.inner * (kind.matrices - 1), kind.hidden, rows,
                 true));
    push(product(op.name + ".down", kind.experts, kind.hidden, kind.inner, rows, true));
  }
  void make(const Operator& op, const Embedding& kind) {
    push(elementwise(op.name, 1, kind.width, kind.lookups));
    kernels_.kernels.back().dram_bytes = static_cast<double>(kind.lookups) *
                                         static_cast<double>(kind.width) *
                                         static_cast<double>(kind.pooling) * kernels_.word_bytes;
  }
  template <typename Kind>
  void make(const Operator& op, const Kind& /*kind*/) {
    std::int64_t width = 1, elements = 1;
    if (!op.outputs.empty()) {
      const Tensor& output = graph_.tensors[at(op.outputs[0])];
      if (!output.dims.empty()) width = std::max<std::int64_t>(1, output.dims.back());
      elements = std::max<std::int64_t>(1, element_count(output).value_or(1));
    }
    push(elementwise(op.name, 1, width, ceil_div(elements, width)));
  }

  const Graph& graph_;
  KernelGraph kernels_;
  std::vector<std::int32_t> writer_;  ///< By tensor: its kernel, or -1.
  std::pair<std::int32_t, std::int32_t> latest_{-1, -1};
};

}  // namespace

KernelGraph kernels_of(const Graph& graph, LayerId first, LayerId last, double word_bytes) {
  KernelBuilder conversion(graph, word_bytes);
  const OperatorId begin = graph.layers[static_cast<std::size_t>(first)].first;
  const OperatorId end = graph.layers[static_cast<std::size_t>(last) - 1].last;
  for (OperatorId id = begin; id < end; ++id) {
    conversion.add(graph.operators[static_cast<std::size_t>(id)]);
  }
  KernelGraph kernels = conversion.finish(begin, end);
  check_kernel_graph(kernels, graph.name);
  return kernels;
}

DataflowChip dataflow_chip(const Chip& chip, Dtype dtype) {
  const std::optional<double> peak = matmul_peak(chip, dtype);
  if (!peak) throw Error(fmt::format("chip {} lists no peak for this precision", chip.name));
  if (!chip.on_chip) {
    throw Error(fmt::format("chip {} lists no on-chip memory", chip.name),
                "add `on_chip` to a YAML file of your own");
  }
  constexpr int kMostTiles = 1 << 22;
  if (chip.compute_units > kMostTiles) {
    throw Error(fmt::format("chip {} has more than {} compute units", chip.name, kMostTiles));
  }
  DataflowChip tiles;
  tiles.tiles = std::max(1, chip.compute_units);
  tiles.lanes = std::max(1, chip.efficiency.tile_n);
  tiles.stages = std::max(1, chip.efficiency.tile_m);
  tiles.clock_hz = *peak / (2 * static_cast<double>(tiles.tiles) *
                            static_cast<double>(tiles.lanes) * static_cast<double>(tiles.stages));
  tiles.sram_bytes = chip.on_chip->bytes;
  tiles.dram_bytes = usable_bytes(chip);
  tiles.dram_bytes_per_s = chip.memory.bytes_per_s;
  return tiles;
}

}  // namespace braid
