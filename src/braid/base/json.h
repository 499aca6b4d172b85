#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace braid {

/// JSON to be written: keys keep the order in which they are set. Include this header only in
/// sources that write JSON; it is heavy. Reading goes through Document.
using Json = nlohmann::ordered_json;

/// Text of `json`, two spaces per level, ending in a newline; arrays of scalars stay on one line.
/// Doubles are the shortest text that reads back exactly. NaN and infinities are assertions.
std::string to_text(const Json& json);

}  // namespace braid
