#pragma once

#include <span>
#include <vector>

#include "braid/profile/estimator.h"
#include "braid/profile/operator_estimate.h"
#include "braid/profile/tensor_comm.h"

namespace braid {

/// Exposed communication inside a layer for one micro-batch, by pass and axis.
struct LayerComm {
  double tp_forward_s = 0, tp_backward_s = 0;
  /// Of tp_backward_s, what hides behind the weights' gradients when they come right after.
  double tp_hidden_s = 0;
  double ep_forward_s = 0, ep_backward_s = 0;
  double cp_forward_bytes = 0;  ///< Keys and values that travel around the context group, forward.
};

/// How a layer uses an activation.
struct TensorUse {
  TensorId tensor = 0;
  OperatorId first_reader = 0;  ///< In the layer; the end of the layer when only others read it.
  bool sharded = false;         ///< By its writer.
  TensorNeeds needs;
  // Of the readers that want it whole, but for experts, both gradients.
  double input_gradient_s = 0, weight_gradient_s = 0;
};

/// Activations that operators of the layer read, in the order of their first readers, then those of
/// `made_whole` that none does: tensors of the layer that every rank has to have whole in the end.
/// Quadratic in their number.
std::vector<TensorUse> tensor_uses(const Graph& graph, const Layer& layer,
                                   std::span<const OperatorTimes> times,
                                   std::span<const TensorId> made_whole, bool sequence_parallel);

/// `uses`: tensor_uses() of the layer; not looked at for tp 1.
LayerComm layer_comm(const LayerInput& input, std::span<const TensorUse> uses, const Execution& how,
                     const LayerPlace& place);

/// What one device sends to others for one micro-batch of a layer run as `how`, in bytes: for the
/// collectives of layer_comm(), hidden or not; keys and values once around the context group
/// forward, twice backward; a token once to each rank that has one of its experts, and back.
struct LayerSent {
  double forward = 0, backward = 0;
};
LayerSent layer_sent(const LayerInput& input, const Execution& how, const Precision& precision);

}  // namespace braid
