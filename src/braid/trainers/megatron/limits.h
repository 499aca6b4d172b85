#pragma once

#include <string>
#include <vector>

#include "braid/plan/plan.h"

namespace braid {

/// Whether Transformer Engine, which Megatron-LM builds models from, runs on the plan's chips: it
/// needs compute capability 8.0, with which bf16 GEMMs came. True for chips that list no peak
/// but f32's, of which nothing is known.
bool has_transformer_engine(const Plan& plan);

/// What Megatron-LM and Transformer Engine refuse about a plan although each of its arguments is
/// right by itself, one sentence each (megatron/training/arguments.py: validate_args;
/// megatron/core/transformer/transformer_config.py: __post_init__; Transformer Engine's
/// context_parallel.py).
std::vector<std::string> megatron_limits(const Plan& plan);

}  // namespace braid
