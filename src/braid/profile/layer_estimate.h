#pragma once

#include <span>
#include <vector>

#include "braid/profile/estimator.h"
#include "braid/profile/layer_comm.h"
#include "braid/profile/operator_time.h"

namespace braid {

// The steps of estimate_layer(), in their order. Each adds to the estimate what it is named after.

/// A layer's cost so far, and what later steps need of earlier ones.
struct LayerEstimate {
  LayerCost cost;
  double attention_forward_s = 0, attention_backward_s = 0;
  double selective_s = 0;        ///< Of what selective recomputation repeats.
  double again_s = 0;            ///< Of a forward pass for the backward one.
  double whole_stash_bytes = 0;  ///< Were nothing recomputed.
};

/// Operators' times, by pass, and their arithmetic.
void add_compute(const LayerInput& input, const Execution& how,
                 std::span<const OperatorTimes> times, LayerEstimate& estimate);
/// What is kept for the backward pass, with the largest transient, outputs and parameters. `uses`:
/// tensor_uses(), for tp above 1.
void add_memory(const LayerInput& input, const Execution& how, const Precision& precision,
                std::span<const TensorUse> uses, LayerEstimate& estimate);
/// On a dataflow chip: the mapping's times in place of the operators'.
void take_mapped_times(const LayerInput& input, const Execution& how, const LayerPlace& place,
                       LayerEstimate& estimate);
/// Exposed collectives of all axes.
void add_communication(const LayerInput& input, const Execution& how, const LayerPlace& place,
                       std::span<const TensorUse> uses, LayerEstimate& estimate);
/// What is recomputed, and each pass no shorter than the host takes to issue it.
void add_recomputation(const Execution& how, double host_s, LayerEstimate& estimate);
/// Exposed transfers of what lies on the host.
void add_offload(const Execution& how, const Precision& precision, const Chip& chip,
                 LayerCost& cost);

/// Kernels that the host issues for one pass.
double issued_kernels(const LayerInput& input, const Execution& how, const Precision& precision);

}  // namespace braid
