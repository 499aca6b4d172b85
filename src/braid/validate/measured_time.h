#pragma once

#include "braid/graph/graph.h"
#include "braid/plan/plan.h"
#include "braid/validate/measured_run.h"

namespace braid {

/// FLOPs of one iteration as trainers report them: the GEMMs of forward and backward passes,
/// causal attention counted whole (Narayanan et al. 2021, appendix; Chowdhery et al. 2022, appendix
/// B), and with recomputation (`hardware`) the blocks' forward GEMMs once more for full
/// recomputation and those of attention for selective. Linear in distinct layers.
double reported_flops(const Graph& graph, std::int64_t global_batch, Recompute recompute,
                      bool hardware);

/// How long an iteration took: what the row says, or follows from its tokens/s, its samples/s
/// ("46.91 samples/s", in the notes), its model FLOP/s, hardware FLOP/s ("TFLOP/s/GPU=138", "149.02
/// TFLOPs" of the hardware formula, in the notes), MFU or HFU, the first of these that it has. 0
/// when it has none or lacks what the figure refers to.
double measured_time_s(const MeasuredRun& run, const Graph& graph, const Precision& precision,
                       Recompute recompute, const System& system);

}  // namespace braid
