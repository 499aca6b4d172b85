#pragma once

#include "braid/graph/op_work.h"
#include "braid/system/chip.h"

namespace braid {

struct OperatorTimes {
  double forward_s = 0, backward_input_s = 0, backward_weight_s = 0;

  double backward_s() const { return backward_input_s + backward_weight_s; }
};

/// A GEMM as one device runs it: batch × [m × k]·[k × n].
struct MatMulShape {
  double batch = 1, m = 1, n = 1, k = 1;
};

/// Time of the arithmetic alone: tiles are dealt to the compute units in waves; the best of the
/// chip's tile and its halves, and of splitting k over idle units. `peak` in FLOP/s.
double matmul_compute_s(const MatMulShape& shape, double peak, const Chip& chip);

/// Time to move `bytes` through main memory at the achieved bandwidth, which ramps up with size.
double memory_s(double bytes, const Chip& chip);

/// Pointwise and reduction arithmetic at the achieved vector rate.
double vector_s(double flops, const Chip& chip);

}  // namespace braid
