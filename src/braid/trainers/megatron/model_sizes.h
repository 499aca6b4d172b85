#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "braid/trainers/exchange/given_arguments.h"
#include "braid/trainers/exchange/import.h"

namespace braid {

/// Experts of a layer, of the first that has some where Megatron-DeepSpeed lists several numbers;
/// its 1 stands for none.
std::int64_t megatron_experts(GivenArguments& given);

/// The model's sizes (with the defaults of arguments.py); nullopt where they are not all given, or
/// where the model is none that they make up: Import::no_shape says why then. `script` is the
/// program that has the arguments. After the sequence is read.
std::optional<ModelShape> megatron_shape(GivenArguments& given, std::string_view script,
                                         Import& run);

/// Which blocks have experts and which windows, and what is said of layers and not read. After
/// megatron_shape().
void read_megatron_layers(GivenArguments& given, Import& run);

}  // namespace braid
