#pragma once

#include <string>
#include <string_view>

#include "braid/trainers/exchange/import.h"

namespace braid {

/// Whether a text is a JSON object with keys of DeepSpeed's configuration, or a line that starts a
/// run with such a file and has no arguments of Megatron-DeepSpeed.
bool is_deepspeed(std::string_view text);

/// Reads DeepSpeed's JSON configuration (deepspeed/runtime/config.py at 0.19), of a line that
/// starts a run the file that it names, there or beside `file`, and how many processes it starts.
/// Pipeline stages and which layers recompute are set in the model's code: it cannot know them.
/// Throws Error, with the line and the key, for a value that cannot be.
Import import_deepspeed(std::string_view text, const std::string& file,
                        const ImportChoice& choice = {});

}  // namespace braid
