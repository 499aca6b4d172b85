#pragma once

#include <string>

#include "braid/base/json.h"

namespace braid {

/// A text as a YAML value on one line: as it stands where YAML takes it for nothing else, else in
/// quotes. What is no UTF-8 is replaced. Document reads it back.
std::string yaml_word(const std::string& text);

/// `json` as YAML in block style, keys in their order: texts that YAML could take for something
/// else in quotes, texts of several lines as they stand below `|-` (their last line is not empty).
/// Document reads it back.
std::string yaml_text(const Json& json);

}  // namespace braid
