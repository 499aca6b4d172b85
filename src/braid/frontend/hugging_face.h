#pragma once

#include "braid/base/document.h"
#include "braid/frontend/model.h"

namespace braid {

/// Builds the model that a Hugging Face `config.json` describes. Throws Error naming the field.
Graph graph_from_config(const Value& config, const std::string& name, const ModelOptions& options);

}  // namespace braid
