#pragma once

#include <algorithm>
#include <cstdint>

namespace braid {

/// What is known of a layer, run one way, where stages are runs of layers.
struct ChainLayer {
  double forward_s = 0;
  double backward_s = 0;  ///< With recomputation.
  double dense_parameters = 0, expert_parameters = 0;
  double stash_bytes = 0, offloaded_bytes = 0, working_bytes = 0;
  double fixed_bytes = 0, gradient_bytes = 0;  ///< Stated, in place of parameters.
  std::uint64_t weight_shapes = 0;             ///< LayerCost::weight_shapes.

  double time_s() const { return forward_s + backward_s; }
};

/// Sums over a run of layers.
struct RunSums {
  double forward_s = 0, backward_s = 0;
  double dense_parameters = 0, expert_parameters = 0;
  double stash_bytes = 0, offloaded_bytes = 0, working_bytes = 0, fixed_bytes = 0;
  double gradient_bytes = 0;
  double largest_layer_parameters = 0;
  std::uint64_t weight_shapes = 0;

  void add(const ChainLayer& layer) {
    forward_s += layer.forward_s;
    backward_s += layer.backward_s;
    dense_parameters += layer.dense_parameters;
    expert_parameters += layer.expert_parameters;
    stash_bytes += layer.stash_bytes;
    offloaded_bytes += layer.offloaded_bytes;
    fixed_bytes += layer.fixed_bytes;
    gradient_bytes += layer.gradient_bytes;
    weight_shapes |= layer.weight_shapes;
    working_bytes = std::max(working_bytes, layer.working_bytes);
    largest_layer_parameters =
        std::max(largest_layer_parameters, layer.dense_parameters + layer.expert_parameters);
  }
  double time_s() const { return forward_s + backward_s; }
};

}  // namespace braid
