#pragma once

#include "braid/graph/graph.h"
#include "braid/system/chip.h"

namespace braid {

/// A recurrent cell as one device runs it: `steps` one after another, each for `rows` samples.
struct RecurrentShape {
  double steps = 1, rows = 1;
  double gates = 1;  ///< Features that a step computes.
  double input = 0;  ///< Features of a step's input.
  double state = 1;  ///< Features carried from step to step.
  double element_bytes = 2;
};

struct RecurrentTime {
  double forward_s = 0, backward_input_s = 0, backward_weight_s = 0;
};

/// The inputs of all steps take part in one GEMM before the first (Appleyard et al. 2016,
/// arXiv:1604.01946, §3.1); then every step is a GEMM with the state's weights, read again from
/// on-chip memory when they fit there and from main memory when not, and a launch of its own. The
/// weight gradient is one GEMM over all steps. `peak` in FLOP/s.
RecurrentTime recurrent_time(const RecurrentShape& shape, double peak, const Chip& chip);

}  // namespace braid
