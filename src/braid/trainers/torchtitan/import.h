#pragma once

#include <string>
#include <string_view>

#include "braid/trainers/exchange/import.h"

namespace braid {

/// Whether a text has the keys of torchtitan: its TOML, or a Python recipe of later versions.
bool is_torchtitan(std::string_view text);

/// Reads torchtitan's TOML (0.2) or a Python recipe. `blocks` are those of the model that is named
/// beside it, over which its stages go; 0: of its own. Throws Error, with the line and the key, for
/// a value that cannot be.
Import import_torchtitan(std::string_view text, const std::string& file, std::int64_t blocks = 0);

}  // namespace braid
