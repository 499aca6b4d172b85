#pragma once

#include <string>
#include <string_view>

#include "braid/trainers/exchange/import.h"

namespace braid {

/// Whether a text has the keys of Hugging Face Accelerate.
bool is_accelerate(std::string_view text);

/// Reads what Hugging Face Accelerate is started with. Throws Error, naming the key, for a value
/// that cannot be.
Import import_accelerate(std::string_view text, const std::string& file,
                         const ImportChoice& choice = {});

}  // namespace braid
