#pragma once

#include "braid/base/dtype.h"
#include "braid/graph/graph.h"

namespace braid {

/// Gives all activations and parameters of floating-point formats of 16 bits and more the formats
/// that a job computes in, whatever the model's file stores them as. Narrower ones stay: they are
/// quantized on purpose.
void set_working_precision(Graph& graph, Dtype activation, Dtype parameter);

}  // namespace braid
