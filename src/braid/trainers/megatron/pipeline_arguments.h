#pragma once

#include <cstdint>
#include <string>

#include "braid/trainers/exchange/given_arguments.h"
#include "braid/trainers/exchange/import.h"

namespace braid {

/// Reads how many stages and chunks there are and which blocks each has, of a model of so many
/// blocks (0: not known). Throws Error, naming the argument, where Megatron-LM has no such split
/// (megatron/training/arguments.py: validate_args; megatron/core/transformer/transformer_block.py:
/// get_num_layers_to_build).
void read_pipeline(GivenArguments& given, const std::string& file, std::int64_t blocks,
                   Import& run);

/// The kinds of a hybrid's layers, "MEM*|EMEM/*E/*E" (hybrid_layer_allocation.py): | ends a chunk,
/// and / comes before each further prediction. nullopt: the model is no hybrid.
std::optional<std::string> hybrid_pattern_of(GivenArguments& given);

}  // namespace braid
