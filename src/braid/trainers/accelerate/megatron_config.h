#pragma once

#include "braid/trainers/exchange/given_arguments.h"
#include "braid/trainers/exchange/import.h"

namespace braid {

/// Reads megatron_lm_config of Accelerate's file, whose keys have lost their prefix, with
/// distributed_type MEGATRON_LM: the run is Megatron-LM's then (MegatronLMPlugin in
/// src/accelerate/utils/dataclasses.py).
void read_megatron_lm(GivenArguments& given, Import& run);

}  // namespace braid
