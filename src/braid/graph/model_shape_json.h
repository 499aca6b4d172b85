#pragma once

#include "braid/base/document.h"
#include "braid/base/json.h"
#include "braid/graph/model_shape.h"

namespace braid {

/// The `shape` of graphs and plans (docs/file-formats.md). What a config.json alone says is written
/// where it says it.
Json to_json(const ModelShape& shape);

/// Throws Error for unknown keys, negative counts and numbers that are not finite.
ModelShape shape_from_json(const Value& value);

}  // namespace braid
