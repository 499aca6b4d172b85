#pragma once

#include <string>

#include "braid/base/document.h"
#include "braid/serve/served_model.h"

namespace braid {

/// The model that a config.json describes. Beside the architectures of the frontend, which can be
/// trained, those that are only served: `minimax_m2`, `glm_moe_dsa`, `qwen3_5_moe_text`. Throws
/// Error naming the field.
ServedModel served_from_config(const Value& config, const std::string& name);

}  // namespace braid
