#pragma once

#include "braid/trainers/exchange/given_arguments.h"
#include "braid/trainers/exchange/import.h"

namespace braid {

/// Reads what Megatron-LM is told of overlap, fusion, kernels and the optimizer: what changes a
/// TrainerBehaviour or the optimizer's state goes there, what no figure depends on becomes a note.
/// After degrees, sharding and precision.
void read_behaviour(GivenArguments& given, Import& run);

}  // namespace braid
