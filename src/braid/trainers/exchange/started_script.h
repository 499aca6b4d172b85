#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "braid/trainers/exchange/import.h"

namespace braid {

/// A script that a command line or another script hands to a shell.
struct StartedScript {
  std::string file;  ///< As it is named.
  std::string text;  ///< What is set before it, on its first line, and the script's own text.
};

/// The first that `text` starts (bash, sh, sbatch, srun or by its own name) and whose text `choice`
/// has; nullopt: none. Of what is set around it, the script sees what is exported and, of a command
/// line, what stands before the command.
///
///     started_script("TP=8 bash train.sh", "run.sh", choice)->text;  // "export TP='8';
///     #!/bin/bash…"
std::optional<StartedScript> started_script(std::string_view text, const std::string& file,
                                            const ImportChoice& choice);

}  // namespace braid
