#pragma once

#include <span>
#include <vector>

#include "braid/profile/estimator.h"
#include "braid/profile/layer_comm.h"
#include "braid/profile/operator_time.h"

namespace braid {

/// A layer's cost before anything trades time for memory, and what each trade needs to know.
struct LayerEstimate {
  LayerCost cost;  ///< Without a stash, and passes perhaps shorter than the host takes.
  double attention_forward_s = 0, attention_backward_s = 0;
  double selective_s = 0;          ///< Of what selective recomputation repeats.
  double again_s = 0;              ///< Of a forward pass for the backward one.
  double unkept_forward_s = 0;     ///< Of a forward pass that keeps its input alone.
  double whole_stash_bytes = 0;    ///< Where nothing is recomputed …
  double partial_stash_bytes = 0;  ///< … and under selective recomputation.
  double host_s = 0;               ///< That the host takes to issue a pass.
};

/// Whatever `how` recomputes and offloads. `times`: where chips are such that layers are mapped
/// onto them, what the passes take in place of the mapping's times. Cost: that of estimate_layer().
LayerEstimate estimate_untraded(const LayerInput& input, const Execution& how,
                                const LayerPlace& place, const MappedTimes* times = nullptr);

/// With what `how` recomputes and offloads: estimate_layer() of the layer that the estimate is for.
/// Cost: constant.
LayerCost traded(const LayerEstimate& estimate, const Execution& how, const Precision& precision,
                 const Chip& chip);

// The steps of both, in their order. Each adds to the estimate what it is named after.

/// Operators' times, by pass, and their arithmetic.
void add_compute(const LayerInput& input, const Execution& how,
                 std::span<const OperatorTimes> times, LayerEstimate& estimate);
/// What is kept for the backward pass, with the largest transient, outputs and parameters. `uses`:
/// tensor_uses(), for tp above 1.
void add_memory(const LayerInput& input, const Execution& how, const Precision& precision,
                std::span<const TensorUse> uses, LayerEstimate& estimate);
/// Those of the layer's passes in place of the operators'.
void take_mapped_times(const MappedTimes& times, LayerEstimate& estimate);
/// Exposed collectives of all axes.
void add_communication(const LayerInput& input, const Execution& how, const LayerPlace& place,
                       std::span<const TensorUse> uses, LayerEstimate& estimate);
/// What is kept and what is recomputed, and each pass no shorter than the host takes to issue it.
void add_recomputation(const LayerEstimate& estimate, Recompute recompute, LayerCost& cost);
/// Exposed transfers of what lies on the host.
void add_offload(const Execution& how, const Precision& precision, const Chip& chip,
                 LayerCost& cost);

/// Kernels that the host issues for one pass.
double issued_kernels(const LayerInput& input, const Execution& how, const Precision& precision);

}  // namespace braid
