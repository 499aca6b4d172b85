#pragma once

#include <string>
#include <vector>

#include "braid/plan/plan.h"
#include "braid/trainers/torchtitan/common_limits.h"

namespace braid {

/// The flavor that the plan trains. Throws Error where torchtitan 0.2.2 has none, and for whatever
/// else ends it with an error before the first step (ParallelDims in distributed/parallel_dims.py,
/// parallelize_*() in models/*/infra/parallelize.py, update_from_config() in
/// models/*/model/args.py, distributed/pipeline_parallel.py).
const TorchtitanModel& check_torchtitan_runs(const Plan& plan);

/// What runs in another way under 0.2.2 than the plan takes it to, one sentence each.
std::vector<std::string> torchtitan_limits(const Plan& plan, const TorchtitanModel& model);

/// Whether 0.2.2 wraps the model in FSDP, which shards state over the data-parallel ranks of its
/// sharding degree and over all context-parallel ranks, and computes in the precision asked for.
bool torchtitan_has_fsdp(const Plan& plan);

/// Whether all of the state must be in bfloat16 for GEMMs to be: 0.2.2 mixes precisions in FSDP,
/// and where nothing is parallel but data (maybe_enable_amp() in distributed/utils.py).
bool torchtitan_trains_in_bf16(const Plan& plan);

}  // namespace braid
