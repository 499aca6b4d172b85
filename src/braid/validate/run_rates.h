#pragma once

#include "braid/validate/measured_run.h"

namespace braid {

/// The run with what its rates tell of the sequence length and the global batch where it does not
/// say them:
/// - model FLOP/s over tokens/s is the work of a token, which of all powers of two from 512 to 2^20
///   one sequence length gives (within a fiftieth: reported_flops);
/// - tokens/s, devices, time and sequence length give the samples of an iteration;
/// - without those and without a pipeline, each rank is taken to run one micro-batch.
/// What cannot be told so stays 0. Deterministic.
MeasuredRun with_told_by_rates(const MeasuredRun& run);

}  // namespace braid
