#include "braid/plan/memory_form.h"

#include "braid/plan/totals.h"

namespace braid {

StateBytes state_bytes_of(const DataParallelContext& context) {
  const Precision& precision = context.precision;
  const double weight_bytes = bytes_per_element(precision.weight);
  const double gradient_bytes = bytes_per_element(precision.gradient);
  const auto divided = [&](double bytes, Zero least) -> PerParameter {
    if (context.zero < least) return {bytes, bytes};
    return {bytes / context.dense_ranks, bytes / context.expert_ranks};
  };
  StateBytes form;
  form.weights = divided(weight_bytes, Zero::parameters);
  form.gradients = divided(gradient_bytes, Zero::gradients);
  form.optimizer = divided(precision.optimizer_bytes_per_parameter, Zero::optimizer);
  // Sharded parameters are gathered a layer ahead of their use; sharded gradients are whole for the
  // layer whose backward pass runs. Weights on the host come to the device like gathered ones.
  if (context.zero == Zero::parameters) form.per_largest_layer_parameter += 2 * weight_bytes;
  if (context.zero >= Zero::gradients) form.per_largest_layer_parameter += gradient_bytes;
  if (context.offload_weights) form.per_largest_layer_parameter += 2 * weight_bytes;
  form.weights_on_host = context.offload_weights;
  form.optimizer_on_host = context.offload_optimizer;
  return form;
}

MemoryForm memory_form(const DataParallelContext& context, double available_bytes) {
  const StateBytes state = state_bytes_of(context);
  MemoryForm form;
  form.available_bytes = available_bytes;
  form.placeholder_bytes = context.placeholder_bytes;
  form.per_largest_layer_parameter = state.per_largest_layer_parameter;
  if (context.chip != nullptr && context.chip->host) {
    form.host_available_bytes = context.chip->host->bytes;
  }
  const auto add = [&](const PerParameter& bytes, bool on_host) {
    (on_host ? form.host_per_dense_parameter : form.per_dense_parameter) += bytes.dense;
    (on_host ? form.host_per_expert_parameter : form.per_expert_parameter) += bytes.expert;
  };
  add(state.weights, state.weights_on_host);
  add(state.gradients, false);
  add(state.optimizer, state.optimizer_on_host);
  return form;
}

}  // namespace braid
