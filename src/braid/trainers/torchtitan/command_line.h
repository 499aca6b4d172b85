#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "braid/trainers/exchange/import.h"
#include "braid/trainers/exchange/settings.h"

namespace braid {

/// What a command line "torchrun … -m torchtitan.train …" says.
struct TorchtitanCommand {
  std::string config_file;         ///< Its TOML; empty: none is named.
  std::string module, recipe;      ///< --module and --config of later versions.
  std::vector<Setting> settings;   ///< What it sets beside, "parallelism.tensor_parallel_degree".
  std::int64_t devices = 0;        ///< 0: not said.
  std::vector<std::string> notes;  ///< What its script leaves open.
};

/// Whether a text is a command line, or a script with one, that starts torchtitan.
bool is_torchtitan_command(std::string_view text);

/// Reads it, with the variables of the files that it reads in. Throws Error where no command of the
/// script starts torchtitan.
TorchtitanCommand torchtitan_command(std::string_view text, const std::string& file,
                                     const ImportChoice& choice);

}  // namespace braid
