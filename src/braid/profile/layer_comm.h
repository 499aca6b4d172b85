#pragma once

#include "braid/profile/estimator.h"

namespace braid {

/// Exposed communication inside a layer for one micro-batch, by pass and axis.
struct LayerComm {
  double tp_forward_s = 0, tp_backward_s = 0;
  double ep_forward_s = 0, ep_backward_s = 0;
  double cp_forward_bytes = 0;  ///< Keys and values that travel around the context group, forward.
};

LayerComm layer_comm(const Graph& graph, const Layer& layer, const Execution& how,
                     const Precision& precision, const LayerGroups& groups, const System& system);

}  // namespace braid
