#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "braid/graph/graph.h"

namespace braid {

/// A layer like BERT's as a tracer writes it down: three projections with biases of their own,
/// views between them, and each pointwise step by itself. What training_graph() makes of it, with
/// the optimizer's steps, has 131 operators, views included.
class TracedLayer {
 public:
  TracedLayer(std::int64_t samples, std::int64_t length, std::int64_t hidden, std::int64_t heads)
      : samples_(samples), length_(length), hidden_(hidden), heads_(heads) {
    graph_.name = "traced layer";
    graph_.samples = samples;
    graph_.seq_len = length;
    const TensorId input = tensor("input", {samples, length, hidden}, false);
    // What a layer before hands on, so that it has a gradient.
    const TensorId x = add("entry", DataMovement{.view = true}, {input}, {samples, length, hidden});
    const TensorId a = normalized("norm1", added("add1", x, attention(x)), true);
    const TensorId b = normalized("norm2", added("add2", a, feed_forward(a)), false);
    graph_.outputs = {view("exit", b, {samples, length, hidden})};
    graph_.inputs = {input};
    graph_.layers = {
        {.name = "layer", .first = 0, .last = static_cast<OperatorId>(graph_.operators.size())}};
  }
  const Graph& graph() const { return graph_; }

 private:
  TensorId tensor(const std::string& name, std::vector<std::int64_t> dims, bool parameter) {
    graph_.tensors.push_back(
        {.name = "layer." + name, .dims = std::move(dims), .is_parameter = parameter});
    return static_cast<TensorId>(graph_.tensors.size() - 1);
  }
  TensorId add(const std::string& name, OperatorKind kind, std::vector<TensorId> inputs,
               std::vector<std::int64_t> dims) {
    const TensorId output = tensor(name + ".out", std::move(dims), false);
    graph_.tensors.back().producer = static_cast<OperatorId>(graph_.operators.size());
    graph_.operators.push_back({.name = "layer." + name,
                                .kind = std::move(kind),
                                .inputs = std::move(inputs),
                                .outputs = {output}});
    return output;
  }
  std::int64_t rows() const { return samples_ * length_; }

  TensorId linear(const std::string& name, TensorId x, std::int64_t in, std::int64_t out) {
    const TensorId y =
        add(name, MatMul{.m = rows(), .n = out, .k = in},
            {x, tensor(name + ".weight", {in, out}, true)}, {samples_, length_, out});
    return add(name + ".add_bias",
               Elementwise{.elements = rows() * out, .keeps = Elementwise::Keeps::nothing},
               {y, tensor(name + ".bias", {out}, true)}, {samples_, length_, out});
  }
  TensorId pointwise(const std::string& name, std::vector<TensorId> inputs, double flops) {
    const auto& first = graph_.tensors[static_cast<std::size_t>(inputs.front())].dims;
    std::int64_t elements = 1;
    for (const std::int64_t dim : first) elements *= dim;
    return add(name, Elementwise{.elements = elements, .flops_per_element = flops},
               std::move(inputs), std::vector<std::int64_t>(first));
  }
  TensorId view(const std::string& name, TensorId x, std::vector<std::int64_t> dims) {
    return add(name, DataMovement{.view = true}, {x}, std::move(dims));
  }
  TensorId flat(const std::string& name, TensorId x) {
    const auto& dims = graph_.tensors[static_cast<std::size_t>(x)].dims;
    return view(name + ".flat", x, {rows(), dims.back()});
  }
  TensorId added(const std::string& name, TensorId a, TensorId b) {
    return pointwise(name, {a, b}, 1);
  }
  TensorId normalized(const std::string& name, TensorId x, bool biased) {
    std::vector<TensorId> inputs = {x, tensor(name + ".weight", {hidden_}, true)};
    if (biased) inputs.push_back(tensor(name + ".bias", {hidden_}, true));
    return add(name, Normalization{.elements = rows() * hidden_, .width = hidden_, .rms = !biased},
               std::move(inputs), {samples_, length_, hidden_});
  }
  TensorId dropout(const std::string& name, TensorId x) {
    return pointwise(name + ".scale", {pointwise(name, {x}, 1)}, 1);
  }
  /// x · (1 + erf(x / √2)) / 2, step by step.
  TensorId gelu(TensorId x) {
    const TensorId scaled = pointwise("gelu.divide", {x}, 1);
    const TensorId error = pointwise("gelu.erf", {scaled}, 8);
    const TensorId shifted = pointwise("gelu.add", {error}, 1);
    return pointwise("gelu.halve", {pointwise("gelu.multiply", {x, shifted}, 1)}, 1);
  }
  TensorId attention(TensorId x) {
    const std::int64_t width = hidden_ / heads_, batch = samples_ * heads_;
    std::vector<TensorId> parts;
    for (const char* name : {"query", "key", "value"}) {
      const std::string part = name;
      const TensorId y = linear(part, x, hidden_, hidden_);
      const TensorId split = view(part + ".split", y, {samples_, length_, heads_, width});
      const TensorId turned = view(part + ".turn", split, {samples_, heads_, length_, width});
      parts.push_back(view(part + ".contiguous", turned, {samples_, heads_, length_, width}));
    }
    parts[1] = view("key.transpose", parts[1], {samples_, heads_, width, length_});
    const TensorId scores = add(
        "scores", MatMul{.batch = batch, .m = length_, .n = length_, .k = width, .weight = false},
        {parts[0], parts[1]}, {samples_, heads_, length_, length_});
    const TensorId scaled = pointwise("scale", {scores}, 1);
    const TensorId masked = pointwise("mask", {scaled}, 1);
    const TensorId shares =
        add("softmax", Softmax{.elements = batch * length_ * length_, .width = length_}, {masked},
            {samples_, heads_, length_, length_});
    const TensorId dropped = dropout("dropout", shares);
    const TensorId mixed =
        add("mix", MatMul{.batch = batch, .m = length_, .n = width, .k = length_, .weight = false},
            {dropped, parts[2]}, {samples_, heads_, length_, width});
    const TensorId turned = view("turn", mixed, {samples_, length_, heads_, width});
    const TensorId together = view("contiguous", turned, {samples_, length_, heads_, width});
    const TensorId joined = view("join", together, {samples_, length_, hidden_});
    return dropout("attention.dropout", linear("output", flat("output", joined), hidden_, hidden_));
  }
  TensorId feed_forward(TensorId x) {
    const TensorId up = linear("up", flat("up", x), hidden_, 4 * hidden_);
    const TensorId active = flat("down", gelu(up));
    return dropout("feed_forward.dropout", linear("down", active, 4 * hidden_, hidden_));
  }

  std::int64_t samples_, length_, hidden_, heads_;
  Graph graph_;
};

}  // namespace braid
