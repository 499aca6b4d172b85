#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "braid/frontend/graph_builder.h"

namespace braid {

/// A vector of features of one sample.
struct Features {
  TensorId tensor = -1;
  std::int64_t width = 1;
};

/// How a stack of dense layers is built.
struct DenseStack {
  std::string name;  ///< Layers are NAME0, NAME1, …
  bool bias = true;
  bool ends_linear = false;  ///< No ReLU after the last layer (logits).
};

/// Dense layers of the given widths, a ReLU after each; every one begins a layer of the graph.
/// Tensor parallelism splits them in pairs, the first by output and the second by input features
/// (Shoeybi et al. 2019 §3), so that one reduction serves two; an odd last one is replicated.
Features dense_stack(GraphBuilder& builder, const DenseStack& stack, Features x,
                     std::span<const std::int64_t> widths);

/// Inputs of `width` features in bf16.
Features feature_input(GraphBuilder& builder, const std::string& name, std::int64_t width);

/// The features of all of `parts` side by side; the only one's own when there is one.
Features concatenate(GraphBuilder& builder, const std::string& name,
                     std::span<const Features> parts);

}  // namespace braid
