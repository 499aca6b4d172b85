#include "braid/chip/graph_kernels.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/index.h"
#include "braid/chip/backward_kernels.h"
#include "braid/chip/kernel_builder.h"
#include "braid/graph/tensor_size.h"

namespace braid {
namespace {

/// Turns forward operators into kernels.
class ForwardBuilder {
 public:
  ForwardBuilder(KernelBuilder& builder, ForwardPass& pass) : builder_(builder), pass_(pass) {
    pass.first_kernel.assign(builder.graph().operators.size(), -1);
  }

  void add(OperatorId id) {
    const Operator& op = builder_.graph().operators[at(id)];
    if (op.pass != Pass::forward) {
      throw Error(fmt::format("operator {} is of the backward pass", op.name),
                  "give a forward graph");
    }
    const auto* movement = std::get_if<DataMovement>(&op.kind);
    if (movement != nullptr && movement->view && !op.inputs.empty()) {
      for (const TensorId output : op.outputs) builder_.show(output, op.inputs[0]);
      return;
    }
    const auto first = static_cast<std::int32_t>(builder_.kernels().kernels.size());
    pass_.first_kernel[at(id)] = first;
    std::visit([&](const auto& kind) { make(op, kind); }, op.kind);
    const std::int32_t last = static_cast<std::int32_t>(builder_.kernels().kernels.size()) - 1;
    for (std::int32_t kernel = first; kernel < last; ++kernel) {
      builder_.connect(kernel, kernel + 1);
    }
    if (const auto* attention = std::get_if<Attention>(&op.kind)) {
      const AttentionOperands operands = attention_operands(builder_.graph(), op, *attention);
      for (const TensorId input : op.inputs) {
        if (input != operands.values || input == operands.queries || input == operands.keys) {
          read(input, first);
        }
      }
      if (operands.values >= 0) read(operands.values, last);
    } else {
      for (const TensorId input : op.inputs) read(input, first);
    }
    for (const TensorId output : op.outputs) builder_.set_writer(output, last);
  }

  /// Tensors that operators outside of [first, last) read, and the graph's outputs, are written
  /// out.
  void finish() {
    const Graph& graph = builder_.graph();
    pass_.leaving.insert(graph.outputs.begin(), graph.outputs.end());
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
      const auto id = static_cast<OperatorId>(i);
      if (id >= pass_.first && id < pass_.last) continue;
      pass_.leaving.insert(graph.operators[i].inputs.begin(), graph.operators[i].inputs.end());
    }
    for (const TensorId tensor : pass_.leaving) {
      const std::int32_t writer = builder_.writer(tensor);
      if (writer >= 0) builder_.kernel(writer).dram_bytes += builder_.bytes(tensor);
    }
  }

 private:
  void push(Kernel kernel) { builder_.push(std::move(kernel)); }

  void read(TensorId tensor, std::int32_t kernel) {
    if (!builder_.graph().tensors[at(tensor)].is_parameter) builder_.read(tensor, kernel);
  }

  void make(const Operator& op, const MatMul& kind) {
    push(gemm_kernel(op.name, kind.batch, kind.n, kind.k, kind.m, kind.weight));
  }
  void make(const Operator& op, const Attention& kind) {
    const std::int64_t heads = kind.samples * kind.heads;
    push(gemm_kernel(op.name + ".scores", heads, kind.kv_len, kind.qk_dim, kind.q_len, false));
    push(elementwise_kernel(op.name + ".softmax", heads, kind.kv_len, kind.q_len));
    push(gemm_kernel(op.name + ".values", heads, kind.v_dim, kind.kv_len, kind.q_len, false));
  }
  void make(const Operator& op, const Convolution& kind) {
    push(convolution_kernel(op.name, kind, false));
  }
  void make(const Operator& op, const Recurrent& kind) {
    push(gemm_kernel(op.name, 1, kind.n, kind.k, kind.steps * kind.rows, true));
  }
  void make(const Operator& op, const MoeRouter& kind) {
    push(gemm_kernel(op.name, 1, kind.experts, kind.hidden, kind.tokens, true));
  }
  void make(const Operator& op, const MoeExperts& kind) {
    const std::int64_t rows = ceil_div(kind.tokens * kind.top_k, kind.experts);
    push(gemm_kernel(op.name + ".up", kind.experts, kind.inner * (kind.matrices - 1), kind.hidden,
                     rows, true));
    push(gemm_kernel(op.name + ".down", kind.experts, kind.hidden, kind.inner, rows, true));
  }
  void make(const Operator& op, const Embedding& kind) {
    const std::int64_t pooling = std::max<std::int64_t>(1, kind.pooling);
    Kernel kernel = elementwise_kernel(op.name, 1, kind.width, ceil_div(kind.lookups, pooling));
    kernel.dram_bytes = static_cast<double>(kind.lookups) * static_cast<double>(kind.width) *
                        builder_.kernels().word_bytes;
    push(std::move(kernel));
  }
  template <typename Kind>
  void make(const Operator& op, const Kind& /*kind*/) {
    push(op.outputs.empty() ? elementwise_kernel(op.name, 1, 1, 1)
                            : builder_.over(op.name, op.outputs[0]));
  }

  KernelBuilder& builder_;
  ForwardPass& pass_;
};

}  // namespace

KernelGraph kernels_of(const Graph& graph, LayerId first, LayerId last, double word_bytes,
                       GraphPasses passes) {
  KernelBuilder builder(graph, word_bytes);
  ForwardPass pass;
  pass.first = graph.layers[at(first)].first;
  pass.last = graph.layers[at(last) - 1].last;
  ForwardBuilder forward(builder, pass);
  for (OperatorId id = pass.first; id < pass.last; ++id) forward.add(id);
  forward.finish();
  if (passes != GraphPasses::forward) {
    add_backward_kernels(builder, pass, passes == GraphPasses::step);
  }
  KernelGraph kernels = std::move(builder.kernels());
  check_kernel_graph(kernels, graph.name);
  return kernels;
}

double table_elements(const Graph& graph, LayerId first, LayerId last) {
  std::set<TensorId> tables, others;
  for (OperatorId id = graph.layers[at(first)].first; id < graph.layers[at(last) - 1].last; ++id) {
    const Operator& op = graph.operators[at(id)];
    const bool looks_up = std::holds_alternative<Embedding>(op.kind);
    for (const TensorId input : op.inputs) {
      if (graph.tensors[at(input)].is_parameter) (looks_up ? tables : others).insert(input);
    }
  }
  double elements = 0;
  for (const TensorId table : tables) {
    if (others.count(table) == 0) elements += elements_of(graph.tensors[at(table)]);
  }
  return elements;
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
