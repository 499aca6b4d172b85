#include "braid/chip/kernel_builder.h"

#include <algorithm>

#include "braid/base/index.h"
#include "braid/graph/tensor_size.h"

namespace braid {

Kernel gemm_kernel(std::string name, std::int64_t outer, std::int64_t m, std::int64_t k,
                   std::int64_t n, bool weights) {
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

Kernel elementwise_kernel(std::string name, std::int64_t outer, std::int64_t width,
                          std::int64_t rows) {
  Kernel kernel = gemm_kernel(std::move(name), outer, width, 1, rows, false);
  kernel.matrix = false;
  return kernel;
}

AttentionOperands attention_operands(const Graph& graph, const Operator& op,
                                     const Attention& kind) {
  std::vector<TensorId> inputs;
  inputs.reserve(op.inputs.size());
  for (const TensorId id : op.inputs) {
    if (!graph.tensors[at(id)].is_parameter) inputs.push_back(id);
  }
  if (inputs.empty()) return {};
  const auto elements = [&](std::size_t i) { return elements_of(graph.tensors[at(inputs[i])]); };
  const auto samples = static_cast<double>(kind.samples);
  const double queries = samples * static_cast<double>(kind.heads) *
                         static_cast<double>(kind.q_len) * static_cast<double>(kind.qk_dim);
  const double keys_and_values = samples * static_cast<double>(kind.kv_heads) *
                                 static_cast<double>(kind.kv_len) *
                                 static_cast<double>(kind.qk_dim + kind.v_dim);
  // All three, or keys and values, may lie in one tensor.
  AttentionOperands operands{inputs[0], inputs[0], inputs[0]};
  if (inputs.size() < 2 || elements(0) > queries) return operands;
  operands.keys = operands.values = inputs[1];
  if (inputs.size() > 2 && elements(1) < keys_and_values) operands.values = inputs[2];
  return operands;
}

KernelBuilder::KernelBuilder(const Graph& graph, double word_bytes)
    : graph_(graph), writer_(graph.tensors.size(), -1) {
  kernels_.word_bytes = word_bytes;
  shown_.resize(graph.tensors.size());
  for (std::size_t id = 0; id < shown_.size(); ++id) shown_[id] = static_cast<TensorId>(id);
}

std::int32_t KernelBuilder::push(Kernel kernel) {
  kernels_.kernels.push_back(std::move(kernel));
  return static_cast<std::int32_t>(kernels_.kernels.size()) - 1;
}

void KernelBuilder::connect(std::int32_t from, std::int32_t to) {
  if (connected_.emplace(from, to).second) kernels_.tensors.push_back({from, to});
}

void KernelBuilder::show(TensorId view, TensorId tensor) { shown_[at(view)] = shown(tensor); }

void KernelBuilder::set_writer(TensorId tensor, std::int32_t kernel) {
  writer_[at(shown(tensor))] = kernel;
}

std::int32_t KernelBuilder::writer(TensorId tensor) const { return writer_[at(shown(tensor))]; }

void KernelBuilder::read(TensorId tensor, std::int32_t number) {
  const std::int32_t from = writer(tensor);
  if (from < 0) {
    kernel(number).dram_bytes += bytes(tensor);
  } else {
    connect(from, number);
  }
}

double KernelBuilder::bytes(TensorId tensor) const {
  return elements_of(graph_.tensors[at(tensor)]) * kernels_.word_bytes;
}

Kernel KernelBuilder::over(std::string name, TensorId tensor) const {
  const Tensor& shape = graph_.tensors[at(tensor)];
  const std::int64_t width = shape.dims.empty() ? 1 : std::max<std::int64_t>(1, shape.dims.back());
  const std::int64_t elements = std::max<std::int64_t>(1, element_count(shape).value_or(1));
  return elementwise_kernel(std::move(name), 1, width, ceil_div(elements, width));
}

}  // namespace braid
