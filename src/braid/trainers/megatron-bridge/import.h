#pragma once

#include <string>
#include <string_view>

#include "braid/trainers/exchange/import.h"

namespace braid {

/// Whether a text is a recipe of Megatron-Bridge or overrides of one.
bool is_megatron_bridge(std::string_view text);

/// Reads what bridge_source() finds: a recipe, or overrides of one, as a command line has them
/// (model.tensor_model_parallel_size=4) or a Python script (cfg.model.tensor_model_parallel_size =
/// 4). Throws Error, naming the field, for a value that cannot be, and as bridge_source() does.
Import import_megatron_bridge(std::string_view text, const std::string& file,
                              const ImportChoice& choice = {});

}  // namespace braid
