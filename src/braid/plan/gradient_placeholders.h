#pragma once

#include "braid/plan/plan.h"

namespace braid {

/// Adds to each stage's memory what stands for gradients that kernels have added to those of
/// earlier micro-batches already: for every shape of a weight of the stage's products, experts' one
/// by one, one tensor in the weights' format, kept from one micro-batch to the next (Transformer
/// Engine's get_dummy_wgrad(); Megatron-LM's output projection makes one anew each time, when
/// memory is fullest). `graph` is the plan's model. Plans on devices of one kind.
void add_gradient_placeholders(const Graph& graph, Plan& plan);

}  // namespace braid
