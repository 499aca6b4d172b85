#include "braid/frontend/graph_builder.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "braid/graph/repeated_layers.h"

namespace braid {

GraphBuilder::GraphBuilder(std::string name, std::int64_t seq_len) {
  graph_.name = std::move(name);
  graph_.seq_len = seq_len;
}

void GraphBuilder::begin_layer(std::string name) {
  const auto first = static_cast<OperatorId>(graph_.operators.size());
  graph_.layers.push_back({std::move(name), first, first, -1});
}

TensorId GraphBuilder::input(std::string name, std::vector<std::int64_t> dims, Dtype dtype) {
  graph_.tensors.push_back({std::move(name), std::move(dims), dtype, false, -1});
  graph_.inputs.push_back(static_cast<TensorId>(graph_.tensors.size() - 1));
  return graph_.inputs.back();
}

void GraphBuilder::share_parameters(std::string prefix, std::string owner) {
  sharing_prefix_ = std::move(prefix);
  owner_prefix_ = std::move(owner);
}

TensorId GraphBuilder::parameter(std::string name, std::vector<std::int64_t> dims) {
  if (!sharing_prefix_.empty() && name.starts_with(sharing_prefix_)) {
    const std::string owned = owner_prefix_ + name.substr(sharing_prefix_.size());
    const auto found = std::find_if(
        graph_.tensors.begin(), graph_.tensors.end(),
        [&](const Tensor& tensor) { return tensor.is_parameter && tensor.name == owned; });
    assert(found != graph_.tensors.end() && found->dims == dims);
    return static_cast<TensorId>(found - graph_.tensors.begin());
  }
  graph_.tensors.push_back({std::move(name), std::move(dims), Dtype::bf16, true, -1});
  return static_cast<TensorId>(graph_.tensors.size() - 1);
}

TensorId GraphBuilder::add(std::string name, OperatorKind kind, std::vector<TensorId> inputs,
                           std::vector<std::int64_t> output_dims, Split split) {
  const auto id = static_cast<OperatorId>(graph_.operators.size());
  graph_.tensors.push_back({name + ".out", std::move(output_dims), Dtype::bf16, false, id});
  const auto output = static_cast<TensorId>(graph_.tensors.size() - 1);
  const auto layer = static_cast<LayerId>(graph_.layers.size() - 1);
  graph_.operators.push_back({std::move(name), kind, std::move(inputs), {output}, split, layer});
  graph_.layers.back().last = id + 1;
  return output;
}

TensorId GraphBuilder::linear(const std::string& name, TensorId x, const LinearSize& size,
                              bool bias, Split split) {
  const auto [rows, k, n] = size;
  std::vector<TensorId> inputs = {x, parameter(name + ".weight", {k, n})};
  if (bias) inputs.push_back(parameter(name + ".bias", {n}));
  return add(name, MatMul{1, rows, n, k, true, bias}, std::move(inputs), {rows, n}, split);
}

TensorId GraphBuilder::norm(const std::string& name, TensorId x, std::int64_t rows,
                            std::int64_t width, bool rms) {
  std::vector<TensorId> inputs = {x, parameter(name + ".weight", {width})};
  if (!rms) inputs.push_back(parameter(name + ".bias", {width}));
  return add(name, Normalization{rows * width, width, rms}, std::move(inputs), {rows, width},
             Split::sequence);
}

TensorId GraphBuilder::residual(const std::string& name, TensorId a, TensorId b, std::int64_t rows,
                                std::int64_t width) {
  return add(name, Elementwise{rows * width, 1, Elementwise::Keeps::nothing}, {a, b}, {rows, width},
             Split::sequence);
}

TensorId GraphBuilder::embedding(const std::string& name, TensorId tokens_in, TensorId table,
                                 std::int64_t entries, std::int64_t width, std::int64_t tokens) {
  return add(name, Embedding{entries, width, tokens, 1}, {tokens_in, table}, {tokens, width},
             Split::vocab);
}

TensorId GraphBuilder::add_positions(const std::string& name, TensorId x, std::int64_t positions,
                                     std::int64_t tokens, std::int64_t width) {
  const TensorId table = parameter("positions.weight", {positions, width});
  return add(name, Elementwise{tokens * width, 1, Elementwise::Keeps::nothing}, {x, table},
             {tokens, width}, Split::sequence);
}

TensorId GraphBuilder::dropout(const std::string& name, TensorId x, std::int64_t rows,
                               std::int64_t width) {
  return add(name, Elementwise{rows * width, 2, Elementwise::Keeps::mask}, {x}, {rows, width},
             Split::sequence);
}

TensorId GraphBuilder::language_loss(TensorId x, TensorId weight, std::int64_t tokens,
                                     std::int64_t width, std::int64_t vocab, TensorId bias) {
  std::vector<TensorId> inputs = {x, weight};
  if (bias >= 0) inputs.push_back(bias);
  const TensorId logits = add("lm_head", MatMul{1, tokens, vocab, width, true, bias >= 0},
                              std::move(inputs), {tokens, vocab}, Split::vocab);
  return add("loss", Loss{tokens, vocab}, {logits}, {1}, Split::vocab);
}

Graph GraphBuilder::finish(std::vector<TensorId> outputs) {
  graph_.outputs = std::move(outputs);
  find_repeated_layers(graph_);
  return std::move(graph_);
}

}  // namespace braid
