#pragma once

#include <string>
#include <string_view>

#include "braid/trainers/exchange/import.h"

namespace braid {

/// Whether a text has the keys of MaxText.
bool is_maxtext(std::string_view text);

/// Reads what MaxText is started with. Throws Error, naming the key, for a value that cannot be.
Import import_maxtext(std::string_view text, const std::string& file,
                      const ImportChoice& choice = {});

}  // namespace braid
