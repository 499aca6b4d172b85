#pragma once

#include "braid/trainers/exchange/given_arguments.h"
#include "braid/trainers/exchange/import.h"

namespace braid {

/// Reads what Megatron-DeepSpeed adds to Megatron-LM (its megatron/arguments.py, and
/// add_config_arguments() of deepspeed/__init__.py): with --deepspeed the run is DeepSpeed's. After
/// all others, whose answers it changes. The file of --deepspeed_config is read where `choice` has
/// it.
void read_deepspeed_arguments(GivenArguments& given, const ImportChoice& choice, Import& run);

/// Reads what Megatron-LM's arguments were called before 2022 (--model-parallel-size, --batch-size,
/// --checkpoint-activations, --activations-checkpoint-method), under today's names.
void read_earlier_arguments(GivenArguments& given, Import& run);

}  // namespace braid
