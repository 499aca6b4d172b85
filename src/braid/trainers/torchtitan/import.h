#pragma once

#include <string>
#include <string_view>

#include "braid/trainers/exchange/import.h"

namespace braid {

/// Whether a text has the keys of torchtitan: its TOML, a Python recipe of later versions, or a
/// command line that starts it.
bool is_torchtitan(std::string_view text);

/// Reads what torchtitan_source() finds. The stages go over the blocks of the model that is named
/// beside it, or else of its own. Throws Error, with the line and the key, for a value that cannot
/// be, and as torchtitan_source() does.
Import import_torchtitan(std::string_view text, const std::string& file,
                         const ImportChoice& choice = {});

}  // namespace braid
