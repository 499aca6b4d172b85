#pragma once

#include <string>

#include "braid/base/json.h"

namespace braid {

/// `json` as YAML in block style, keys in their order: texts that YAML could take for something
/// else in quotes, texts of several lines as they stand below `|-` (their last line is not empty).
/// Document reads it back.
std::string yaml_text(const Json& json);

}  // namespace braid
