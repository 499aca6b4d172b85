#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "braid/base/index.h"
#include "braid/graph/graph.h"

namespace braid {

/// One operator of every kind, each reading a tensor of its own from a product before it, so that
/// gradients pass through all of them.
class EveryKindGraph {
 public:
  EveryKindGraph() {
    const std::int64_t t = 48, h = 32;
    const TensorId x = tensor("x", {t, h});
    graph_.inputs = {x};
    const auto start = [&](const std::string& name, std::vector<std::int64_t> dims) {
      return add(name + ".start", Elementwise{count(dims), 1, Elementwise::Keeps::nothing}, {x},
                 std::move(dims));
    };
    add("linear", MatMul{1, t, 64, h, true, true},
        {start("linear", {t, h}), weight({h, 64}), weight({64})}, {t, 64});
    add("product", MatMul{4, 12, 20, 8, false, false},
        {start("product.a", {4, 12, 8}), start("product.b", {4, 8, 20})}, {4, 12, 20});
    for (const bool flash : {true, false}) {
      const std::string name = flash ? "flash" : "plain";
      add(name,
          Attention{.samples = 3,
                    .heads = 4,
                    .kv_heads = 2,
                    .q_len = 16,
                    .kv_len = 16,
                    .qk_dim = 8,
                    .v_dim = 8,
                    .flash = flash},
          {start(name + ".q", {48, 32}), start(name + ".k", {48, 16}),
           start(name + ".v", {48, 16})},
          {48, 32});
    }
    add("conv",
        Convolution{.samples = 2,
                    .in_channels = 6,
                    .out_channels = 8,
                    .groups = 2,
                    .out_positions = 16,
                    .in_positions = 64,
                    .kernel_positions = 9},
        {start("conv", {2, 6, 64}), weight({8, 3, 9})}, {2, 8, 16});
    add("deconv",
        Convolution{.samples = 2,
                    .in_channels = 8,
                    .out_channels = 6,
                    .groups = 1,
                    .out_positions = 64,
                    .in_positions = 16,
                    .kernel_positions = 4,
                    .transposed = true},
        {start("deconv", {2, 8, 16}), weight({8, 6, 4})}, {2, 6, 64});
    add("recurrent", Recurrent{5, 6, 64, 16}, {start("recurrent", {30, 64}), weight({16, 64})},
        {30, 16});
    add("norm", Normalization{t * h, h, false}, {start("norm", {t, h}), weight({h})}, {t, h});
    add("softmax", Softmax{t * h, h}, {start("softmax", {t, h})}, {t, h});
    add("gelu", Elementwise{t * h, 10, Elementwise::Keeps::inputs}, {start("gelu", {t, h})},
        {t, h});
    add("lookup", Embedding{100, h, t, 1}, {weight({100, h})}, {t, h});
    add("router", MoeRouter{t, h, 4, 2}, {start("router", {t, h}), weight({h, 4})}, {t, 4});
    add("experts",
        MoeExperts{.tokens = t, .hidden = h, .inner = 24, .experts = 4, .top_k = 2, .matrices = 3},
        {start("experts", {t, h}), weight({4, 3, h, 24})}, {t, h});
    add("sum", Reduction{t * h}, {start("sum", {t, h})}, {t});
    add("transpose", DataMovement{false}, {start("transpose", {t, h})}, {h, t});
    add("view", DataMovement{true}, {start("view", {t, h})}, {h, t});
    add("loss", Loss{t, h}, {start("loss", {t, h})}, {t});
    graph_.layers = {
        {.name = "all", .first = 0, .last = static_cast<OperatorId>(graph_.operators.size())}};
  }

  Graph graph() && { return std::move(graph_); }

 private:
  static std::int64_t count(const std::vector<std::int64_t>& dims) {
    std::int64_t product = 1;
    for (const std::int64_t dim : dims) product *= dim;
    return product;
  }

  TensorId tensor(std::string name, std::vector<std::int64_t> dims) {
    graph_.tensors.push_back({.name = std::move(name), .dims = std::move(dims)});
    return static_cast<TensorId>(graph_.tensors.size() - 1);
  }

  TensorId weight(std::vector<std::int64_t> dims) {
    const TensorId id = tensor("w" + std::to_string(graph_.tensors.size()), std::move(dims));
    graph_.tensors[at(id)].is_parameter = true;
    return id;
  }

  TensorId add(const std::string& name, OperatorKind kind, std::vector<TensorId> inputs,
               std::vector<std::int64_t> dims) {
    const TensorId out = tensor(name + ".out", std::move(dims));
    graph_.tensors[at(out)].producer = static_cast<OperatorId>(graph_.operators.size());
    graph_.operators.push_back(
        {.name = name, .kind = kind, .inputs = std::move(inputs), .outputs = {out}});
    return out;
  }

  Graph graph_;
};

}  // namespace braid
