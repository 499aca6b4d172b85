#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace braid {

/// The words of one command of a script.
using ShellCommand = std::vector<std::string>;

struct ShellScript {
  std::vector<ShellCommand> commands;  ///< In their order, but for assignments.
  std::vector<std::string> undefined;  ///< Variables that are used and not set, each once.
};

/// Reads a launch script, or a command line, without running anything: comments, continued lines,
/// quotes, assignments (NAME=…, NAME+=…, export, arrays) and what they stand for later ($NAME,
/// ${NAME}, ${NAME:-default}, "${NAME[@]}", $((…)) with + - * / and brackets). Branches and loops
/// are read as if all of their commands ran once. What a variable that is not set, or a command in
/// $(…), would give is left out and listed in `undefined`. Throws Error, with the line, for a quote
/// or a bracket that is not closed. Cost: linear in the text and what it expands to, which may be
/// 1 MiB.
///
///     ShellScript script = read_shell_script("TP=8\npretrain_gpt.py --tp $TP", "train.sh");
///     script.commands.front();  // {"pretrain_gpt.py", "--tp", "8"}
ShellScript read_shell_script(std::string_view text, const std::string& file);

}  // namespace braid
