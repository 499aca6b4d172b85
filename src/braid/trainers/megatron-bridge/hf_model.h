#pragma once

#include <string>
#include <string_view>

#include "braid/trainers/exchange/import.h"

namespace braid {

/// The name at Hugging Face, or the folder, of the model that a script is for: what the last call
/// of from_hf_pretrained() is given, in quotes or by a variable, which may be what an environment
/// variable is where nobody sets it. Empty: it is not said. Cost: linear for each call.
std::string hf_model_of(std::string_view text);

/// Layers and width that a script says: those that one written by braid holds the model to.
void read_checked_sizes(std::string_view text, Import& run);

}  // namespace braid
