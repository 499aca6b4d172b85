#pragma once

#include <string>
#include <vector>

#include "braid/plan/plan.h"
#include "braid/trainers/exchange/trained_job.h"

namespace braid {

/// Whether Transformer Engine, which Megatron-LM builds models from, runs on the plan's chips: it
/// needs compute capability 8.0. True for chips of which none is known.
bool has_transformer_engine(const Plan& plan);

/// Whether Megatron-LM can lay ranks out as tp-cp-pp-dp (--use-tp-pp-dp-mapping): data-parallel
/// groups of experts and of the other layers must then be as large (core/parallel_state.py).
bool can_put_data_outermost(const Plan& plan);

/// Of what Megatron-LM has no script or no argument for, or no kernels on the chips.
JobRefusal megatron_refusal(const TrainedJob& job);

/// Throws Error with what Megatron-LM and Transformer Engine refuse about a plan, or have no words
/// for (megatron/training/arguments.py: validate_args;
/// megatron/core/transformer/transformer_config.py: __post_init__;
/// megatron/core/transformer/torch_norm.py).
void check_megatron_runs(const Plan& plan);

/// What runs in another way than the plan takes it to, one sentence each.
std::vector<std::string> megatron_limits(const Plan& plan);

}  // namespace braid
