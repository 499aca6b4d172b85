#pragma once

#include <cctype>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace braid {

// What variables of a script stand for while it is read.

using ShellWords = std::vector<std::string>;
using ShellVariables = std::map<std::string, ShellWords, std::less<>>;

inline bool is_shell_name_start(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
}
inline bool is_shell_name_part(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// With a space between them.
std::string joined(const ShellWords& words);

// What is not known stands in values as a mark, so that it is still known where it ends up: its
// number between kMark and kMarkEnd. A word of nothing else, without quotes, begins with kNoWord.
inline constexpr char kMark = '\x01', kMarkEnd = '\x02', kNoWord = '\x03';

/// Numbers of the marks of a text, which are taken out of it.
std::vector<std::size_t> take_marks(std::string& text);
std::string without_marks(std::string text);
bool has_marks(const ShellWords& words);

/// Adds a name that is not there.
void note_name(const std::string& name, std::vector<std::string>& names);

/// What is known at the place of a script that is being read.
struct ShellState {
  ShellVariables variables;  ///< Elements of arrays by words are variables "NAME[KEY]".
  std::set<std::string, std::less<>> exported;
  std::set<std::string, std::less<>> of_loops;  ///< Variables that take several values in turn.
  std::vector<std::string> names;               ///< Of marks.
  std::vector<std::string> undefined;           ///< What is used and not known, each once.
  std::vector<std::string> uncertain;           ///< What is set and perhaps not, each once.
  bool is_skipped = false;                      ///< The command at hand does not run.
  bool is_unsure = false;                       ///< Nobody knows whether it does.
};

/// Sets a variable, unless the command is skipped.
void set_variable(const std::string& name, ShellWords value, ShellState& state);

}  // namespace braid
