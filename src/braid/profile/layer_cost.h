#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace braid {

enum class Recompute : std::uint8_t {
  none,
  selective,  ///< Attention's core (and norms, activations) is computed again; projections are
              ///< kept.
  full        ///< Only the layer's input is kept.
};

/// Time of one pass over one layer for one micro-batch on one device, by cause. Communication is
/// what is left exposed after the overlap inside the layer.
struct PassTime {
  double compute_s = 0;
  double tp_comm_s = 0;  ///< Tensor (and sequence) parallel collectives.
  double cp_comm_s = 0;  ///< Context parallel exchange of keys and values.
  double ep_comm_s = 0;  ///< Expert dispatch and combine.
  double offload_s = 0;  ///< Waiting for host memory.

  double total_s() const { return compute_s + tp_comm_s + cp_comm_s + ep_comm_s + offload_s; }
  PassTime& operator+=(const PassTime& other) {
    compute_s += other.compute_s;
    tp_comm_s += other.tp_comm_s;
    cp_comm_s += other.cp_comm_s;
    ep_comm_s += other.ep_comm_s;
    offload_s += other.offload_s;
    return *this;
  }
  friend bool operator==(const PassTime&, const PassTime&) = default;
};

/// What one layer costs, run one way, per device and per micro-batch.
struct LayerCost {
  PassTime forward;
  PassTime recompute;        ///< Extra forward work inside the backward pass.
  PassTime backward_input;   ///< Gradient of the activations.
  PassTime backward_weight;  ///< Gradient of the weights (no communication inside the layer).
  /// Tensor-parallel communication behind the weights' gradients: not in the passes, but shows when
  /// these gradients are put off.
  double hidden_tp_s = 0;

  double model_flops = 0;  ///< Forward and backward arithmetic, without recomputation.
  double dense_parameters =
      0;  ///< Elements on one device, replicated over data (and context) parallel ranks.
  double expert_parameters = 0;  ///< Elements on one device, replicated over dp·cp / ep ranks;
                                 ///< whole experts over dp·cp·tp / ep.
  double stash_bytes = 0;        ///< Kept from forward to backward, per micro-batch in flight.
  double offloaded_bytes = 0;    ///< Of the stash, moved to host memory.
  double working_bytes = 0;      ///< Largest transient need while the layer runs.
  double output_bytes = 0;       ///< What one device hands to the next layer (forward).
  /// Memory that does not grow with the micro-batches in flight, when the profile states it as one
  /// figure (Piper's memoryUsageB); negative: follows from the parameters and the memory policy.
  double fixed_bytes = -1;
  /// To synchronise over data-parallel ranks, likewise; negative: from the parameters.
  double gradient_bytes = -1;

  /// Shapes of weights that the trainer keeps placeholders of, a bit each
  /// (plan/gradient_placeholders.h); for searches, plans have them in fixed_bytes.
  std::uint64_t weight_shapes = 0;

  double backward_s() const {
    return recompute.total_s() + backward_input.total_s() + backward_weight.total_s();
  }
  double time_s() const { return forward.total_s() + backward_s(); }
  friend bool operator==(const LayerCost&, const LayerCost&) = default;
};

/// Of groups of devices, the first on which a layer takes longest. `cost_of(group)`: its cost
/// there.
template <typename CostOf>
std::size_t slowest_of(std::span<const std::size_t> groups, const CostOf& cost_of) {
  std::size_t slowest = groups.front();
  double most_s = -1;
  for (const std::size_t group : groups) {
    const double time_s = cost_of(group).time_s();
    if (time_s <= most_s) continue;
    most_s = time_s;
    slowest = group;
  }
  return slowest;
}

}  // namespace braid
