#pragma once

#include <string>
#include <utility>
#include <vector>

#include "braid/graph/graph.h"

namespace braid {

/// Builds small graphs for tests: tensors and operators get names by number, layers are opened by
/// name.
class GraphBuilder {
 public:
  Graph graph;

  TensorId input(std::vector<std::int64_t> dims, Dtype dtype = Dtype::bf16) {
    const TensorId id = tensor(std::move(dims), dtype);
    graph.inputs.push_back(id);
    return id;
  }
  TensorId parameter(std::vector<std::int64_t> dims, Dtype dtype = Dtype::bf16) {
    const TensorId id = tensor(std::move(dims), dtype);
    graph.tensors.back().is_parameter = true;
    return id;
  }
  void layer(std::string name) {
    const auto first = static_cast<OperatorId>(graph.operators.size());
    graph.layers.push_back({.name = std::move(name), .first = first, .last = first});
  }
  /// Adds an operator with one output of these dims to the last layer and returns the output.
  TensorId add(OperatorKind kind, std::vector<TensorId> inputs, std::vector<std::int64_t> dims,
               Dtype dtype = Dtype::bf16) {
    if (graph.layers.empty()) layer("only");
    const auto id = static_cast<OperatorId>(graph.operators.size());
    const TensorId output = tensor(std::move(dims), dtype);
    graph.tensors.back().producer = id;
    graph.operators.push_back({.name = "op" + std::to_string(id),
                               .kind = std::move(kind),
                               .inputs = std::move(inputs),
                               .outputs = {output},
                               .layer = static_cast<LayerId>(graph.layers.size() - 1)});
    graph.layers.back().last = id + 1;
    return output;
  }

 private:
  TensorId tensor(std::vector<std::int64_t> dims, Dtype dtype) {
    const auto id = static_cast<TensorId>(graph.tensors.size());
    graph.tensors.push_back(
        {.name = "t" + std::to_string(id), .dims = std::move(dims), .dtype = dtype});
    return id;
  }
};

struct GptSizes {
  std::int64_t batch = 2, layers = 3, seq = 64, hidden = 32, heads = 4, vocab = 128;
};

/// A GPT with learned positions, unfused attention with dropout and a tied head, as Megatron-LM
/// trains it. Attention counts in full, as the published formulas do.
inline Graph gpt(const GptSizes& s) {
  GraphBuilder b;
  const std::int64_t rows = s.batch * s.seq;
  const std::int64_t h = s.hidden;
  const auto matmul = [&](TensorId x, std::int64_t n, std::int64_t k) {
    return b.add(MatMul{.m = rows, .n = n, .k = k}, {x, b.parameter({k, n})}, {rows, n});
  };
  const auto norm = [&](TensorId x) {
    return b.add(Normalization{.elements = rows * h, .width = h},
                 {x, b.parameter({h}), b.parameter({h})}, {rows, h});
  };
  const auto dropout_add = [&](TensorId x, TensorId residual) {
    const TensorId dropped = b.add(
        Elementwise{
            .elements = rows * h, .flops_per_element = 2, .keeps = Elementwise::Keeps::mask},
        {x}, {rows, h});
    return b.add(Elementwise{.elements = rows * h, .keeps = Elementwise::Keeps::nothing},
                 {dropped, residual}, {rows, h});
  };
  const TensorId ids = b.input({rows}, Dtype::i32);
  b.layer("embedding");
  const TensorId table = b.parameter({s.vocab, h});
  TensorId x =
      b.add(Embedding{.rows = s.vocab, .width = h, .lookups = rows}, {ids, table}, {rows, h});
  for (std::int64_t i = 0; i < s.layers; ++i) {
    b.layer("block " + std::to_string(i));
    const TensorId normed = norm(x);
    const TensorId q = matmul(normed, h, h);
    const TensorId k = matmul(normed, h, h);
    const TensorId v = matmul(normed, h, h);
    const TensorId core = b.add(Attention{.samples = s.batch,
                                          .heads = s.heads,
                                          .kv_heads = s.heads,
                                          .q_len = s.seq,
                                          .kv_len = s.seq,
                                          .qk_dim = h / s.heads,
                                          .v_dim = h / s.heads,
                                          .flash = false,
                                          .dropout = true},
                                {q, k, v}, {rows, h});
    x = dropout_add(matmul(core, h, h), x);
    const TensorId up = matmul(norm(x), 4 * h, h);
    const TensorId gelu =
        b.add(Elementwise{.elements = rows * 4 * h, .flops_per_element = 8}, {up}, {rows, 4 * h});
    x = dropout_add(matmul(gelu, h, 4 * h), x);
  }
  b.layer("head");
  const TensorId logits =
      b.add(MatMul{.m = rows, .n = s.vocab, .k = h}, {norm(x), table}, {rows, s.vocab});
  const TensorId labels = b.input({rows}, Dtype::i32);
  b.graph.outputs = {b.add(Loss{.rows = rows, .width = s.vocab}, {logits, labels}, {}, Dtype::f32)};
  b.graph.name = "gpt";
  b.graph.samples = s.batch;
  b.graph.seq_len = s.seq;
  return b.graph;
}

}  // namespace braid
