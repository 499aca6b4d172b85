#include "braid/trainers/exchange/open_script.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "braid/base/text.h"
#include "braid/trainers/exchange/export.h"

namespace braid {
namespace {

std::string first_of(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 12;
  std::string text;
  for (std::size_t i = 0; i < std::min(kMost, names.size()); ++i) {
    text += (i > 0 ? ", " : "") + on_one_line(names[i]);
  }
  return names.size() > kMost ? fmt::format("{} and {} more", text, names.size() - kMost) : text;
}

/// Files that the script reads in, as they are named, each once.
std::vector<std::string> sourced_files(const ShellScript& script) {
  std::vector<std::string> files;
  for (const ShellCommand& command : script.commands) {
    const bool is_source = command.size() > 1 && (command[0] == "source" || command[0] == ".");
    const bool is_new =
        is_source && std::find(files.begin(), files.end(), command[1]) == files.end();
    if (is_new) files.push_back(command[1]);
  }
  return files;
}

/// What the files that a script reads in, and those that these read in, set; each file is read
/// where it is met first.
class SourcedFiles {
 public:
  explicit SourcedFiles(const ImportChoice& choice) : choice_(choice) {}

  /// Those of a script that knows these variables.
  void read(const ShellScript& script) {
    for (const std::string& name : sourced_files(script)) {
      if (known_.size() >= kMost || !known_.insert(name).second) continue;
      const std::optional<std::string> text = choice_.text_of(name);
      if (!text) {
        missing.push_back(name);
        continue;
      }
      const ShellScript first = read_shell_script(*text, name, variables);
      const std::size_t before = known_.size();
      read(first);
      // Once more, with what is set before it by what it reads in itself.
      variables = known_.size() == before ? first.variables
                                          : read_shell_script(*text, name, variables).variables;
    }
  }

  ShellVariables variables;
  std::vector<std::string> missing;  ///< Those that are not there, as they are named.

 private:
  static constexpr std::size_t kMost = 64;
  const ImportChoice& choice_;
  std::set<std::string, std::less<>> known_;
};

/// The files that are read in by the script, or what it reads in, and are not there.
std::vector<std::string> missing_files(const ShellScript& script, const ImportChoice& choice) {
  SourcedFiles files(choice);
  files.read(script);
  return files.missing;
}

}  // namespace

ShellScript read_script_with_sourced(std::string_view text, const std::string& file,
                                     const ImportChoice& choice) {
  ShellScript script = read_shell_script(text, file);
  if (!choice.text_of_file) return script;
  SourcedFiles files(choice);
  files.read(script);
  return files.variables.empty() ? script : read_shell_script(text, file, files.variables);
}

UnknownValue why_unknown(const std::string& used, const ShellScript& script,
                         const ImportChoice& choice) {
  const std::string name = on_one_line(used);
  const std::size_t first = name.find_first_not_of("${");
  if (first != std::string::npos && (is_digit(name[first]) || name[first] == '@')) {
    return {name + " is given to the script when it is started", "write its value in its place"};
  }
  const std::vector<std::string> missing = missing_files(script, choice);
  if (missing.empty()) return {name + " is not set in the script", "set it there"};
  return {fmt::format("{} is not set in the script, and {}, which it reads in, is not beside it",
                      name, first_of(missing)),
          "put that file there, or set it in the script"};
}

void note_what_is_open(const std::vector<std::string>& undefined, const ShellScript& script,
                       std::vector<std::string>& notes, const ImportChoice& choice) {
  const std::vector<std::string> sourced = missing_files(script, choice);
  if (!undefined.empty()) {
    notes.push_back("not set in the script, and left out: " + first_of(undefined));
    if (!sourced.empty())
      notes.push_back("sourced by the script, and not read: " + first_of(sourced));
  }
  if (!script.uncertain.empty()) {
    notes.push_back(
        "set under a condition that is not known here, or in a loop, and read as if it held: " +
        first_of(script.uncertain));
  }
}

}  // namespace braid
