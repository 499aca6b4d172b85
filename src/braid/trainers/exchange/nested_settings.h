#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "braid/trainers/exchange/settings.h"

namespace braid {

/// All values of a TOML text in the order of their lines, by "table.key", with these. Arrays have
/// one value, "[\"a\", \"b\"]". Throws Error with the line where it is no TOML. Cost: linear, and
/// sorting.
///
///     settings_of_toml("[training]\nseq_len = 8192\n", "run.toml").front().name;
///     // "training.seq_len"
std::vector<Setting> settings_of_toml(std::string_view text, const std::string& file);

/// As settings_of_toml(), of a JSON text, whose root must be an object.
std::vector<Setting> settings_of_json(std::string_view text, const std::string& file);

}  // namespace braid
