#include "braid/trainers/exchange/open_script.h"

#include <algorithm>

#include <fmt/format.h>

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

/// Files that the script reads in, as they are named.
std::vector<std::string> sourced_files(const ShellScript& script) {
  std::vector<std::string> files;
  for (const ShellCommand& command : script.commands) {
    const bool is_source = command.size() > 1 && (command[0] == "source" || command[0] == ".");
    if (is_source) files.push_back(command[1]);
  }
  return files;
}

}  // namespace

void note_what_is_open(const std::vector<std::string>& undefined, const ShellScript& script,
                       std::vector<std::string>& notes) {
  const std::vector<std::string> sourced = sourced_files(script);
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
