#pragma once

#include "braid/validate/known_models.h"
#include "braid/validate/measured_run.h"

namespace braid {

/// The decoder that MaxText makes of `global_parameter_scale` = `scale` (its get_individual_scales:
/// of three factors of two in turn one goes to heads and the feed-forward width, one to the hidden
/// size and one to the layers). `scale` is a power of two, at least 1.
KnownModel scaled_maxtext(std::int64_t scale);

/// The run with what MaxText's scripts for its models of that many billion parameters say where the
/// row does not: sequence length, samples of a device in a step, tensor-parallel degree and
/// recomputation (configs/v5e/16b.sh to 128b.sh, configs/v5p/32b.sh to 1024b.sh in its repository;
/// "MaxText-64B" on TPU v5e is 64b.sh of v5e). A run of anything else comes back as it is.
MeasuredRun with_maxtext_script(const MeasuredRun& run);

}  // namespace braid
