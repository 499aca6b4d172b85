#pragma once

#include <string>
#include <string_view>

#include "braid/trainers/exchange/import.h"

namespace braid {

/// Whether a text is a recipe of Megatron-Bridge or overrides of one.
bool is_megatron_bridge(std::string_view text);

/// Reads overrides of a recipe, as a command line has them (model.tensor_model_parallel_size=4) or
/// a Python script (cfg.model.tensor_model_parallel_size = 4). Throws Error, naming the field, for
/// a value that cannot be.
Import import_megatron_bridge(std::string_view text, const std::string& file);

}  // namespace braid
