#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "braid/trainers/exchange/import.h"
#include "braid/trainers/exchange/settings.h"

namespace braid {

/// All that a run of torchtitan is started with, wherever it stands.
struct TorchtitanSource {
  bool is_recipe = false;
  std::string file;               ///< That the settings are of.
  std::string recipe;             ///< Its function; empty: none.
  std::vector<Setting> settings;  ///< By the names of the TOML; the last of a name counts.
  std::int64_t devices = 0;       ///< 0: not said.
  bool leaves_recipe = false;     ///< It begins with one of another file, which is not read.
  std::vector<std::string> notes;
};

/// Reads a TOML, a recipe, or a command line with the file that it names, which is looked for as it
/// is named and in the folder of `file`. `choice` names one of several.
/// Throws Error where the named file is not there, and where no recipe or several remain.
TorchtitanSource torchtitan_source(std::string_view text, const std::string& file,
                                   const ImportChoice& choice);

}  // namespace braid
