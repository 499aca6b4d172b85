#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "braid/trainers/exchange/import.h"
#include "braid/trainers/exchange/shell_script.h"

namespace braid {

/// The command of a script that starts a program.
struct LaunchLine {
  ShellCommand before, words;      ///< Before the program's own word, and behind it.
  std::vector<std::string> notes;  ///< What the script leaves open.
};

/// Whether a line of the text that is no comment has this word in it.
bool has_line_with(std::string_view text, std::string_view word);

/// The first command of a script, or of a command line, with a word for which `is_program` holds,
/// as read_script_with_sourced() reads it. nullopt: there is none. Throws Error as that does.
std::optional<LaunchLine> launch_line(std::string_view text, const std::string& file,
                                      const ImportChoice& choice,
                                      bool (*is_program)(const std::string& word));

}  // namespace braid
