#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "braid/trainers/exchange/shell_values.h"

namespace braid {

/// The words of one command of a script.
using ShellCommand = std::vector<std::string>;

/// The text of a file that a script reads in, as the script names it; nullopt: it is not there.
using SourcedText = std::function<std::optional<std::string>(const std::string& name)>;

/// A part of a command that is not known, such as what a variable that is not set stands for.
struct UnknownPart {
  std::size_t command = 0;   ///< Of ShellScript::commands.
  std::size_t word = 0;      ///< That it is in.
  bool is_left_out = false;  ///< It would be words of its own, before `word`.
  std::string name;          ///< "$NAME", "$(…)".
};

struct ShellScript {
  std::vector<ShellCommand> commands;  ///< In their order, but for assignments.
  /// What is used and not known, each once: "$NAME" that is not set, "$(…)" and the like.
  std::vector<std::string> undefined;
  std::vector<UnknownPart> unknown_parts;
  std::vector<std::string> of_conditions;  ///< Of `undefined`, what conditions depend on.
  /// Variables that are set under a condition which is not known, or in a loop, each once.
  std::vector<std::string> uncertain;
  ShellVariables variables;  ///< As they are at the end; with marks for what is not known.
  ShellVariables exported;   ///< Those of them that commands see.
  /// Files that it, or what it reads in, reads in and that are not there, as they are named, each
  /// once.
  std::vector<std::string> missing_files;
};

/// Reads a launch script, or a command line, without running anything: comments, continued lines,
/// quotes, assignments (NAME=…, NAME+=…, export, declare, arrays, ((NAME*=2))) and what they stand
/// for later (ShellWordReader); text that a command is given by << is skipped. Of `if` and `case`
/// the branch is read that the variables choose (ShellBranches), of which those that nothing sets
/// are empty there, as a shell has them; where they do not say, the first that may be, and loops as
/// if they ran once, and what these set is listed in `uncertain`. Functions are
/// read where they stand. What a variable that is not set, or a command in $(…), would give is left
/// out and listed in `undefined`. `known` are variables that are set before. What a file sets that
/// the script reads in (`source`, `.`) is set at that place, where `sourced` has its text; up to 64
/// such files are read. Throws Error, with the line, for a quote, a bracket, `if`, `case` or a loop
/// that is not closed. Cost: linear in the text and what it expands to, which may be 1 MiB.
///
///     ShellScript script = read_shell_script("TP=8\npretrain_gpt.py --tp $TP", "train.sh");
///     script.commands.front();  // {"pretrain_gpt.py", "--tp", "8"}
ShellScript read_shell_script(std::string_view text, const std::string& file,
                              const ShellVariables& known = {}, const SourcedText& sourced = {});

/// The commands of the lines that a command hands to another shell, as `bash -c "…"`, `srun sh -c`
/// and `sbatch --wrap` do. They see variables that the script exports.
std::vector<ShellCommand> inner_commands(const ShellCommand& command, const ShellScript& script,
                                         const std::string& file);

}  // namespace braid
