#include "braid/trainers/exchange/launch_line.h"

#include <algorithm>
#include <cstddef>

#include "braid/base/text.h"
#include "braid/trainers/exchange/open_script.h"

namespace braid {

bool has_line_with(std::string_view text, std::string_view word) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t first = line.find_first_not_of(" \t");
    if (first != std::string_view::npos && line[first] != '#' && contains(line, word)) return true;
  }
  return false;
}

std::optional<LaunchLine> launch_line(std::string_view text, const std::string& file,
                                      const ImportChoice& choice,
                                      bool (*is_program)(const std::string& word)) {
  const ShellScript script = read_script_with_sourced(text, file, choice);
  for (std::size_t c = 0; c < script.commands.size(); ++c) {
    const ShellCommand& words = script.commands[c];
    const auto program = std::find_if(words.begin(), words.end(), is_program);
    if (program == words.end()) continue;
    LaunchLine line;
    line.before.assign(words.begin(), program);
    line.words.assign(program + 1, words.end());
    std::vector<std::string> open = script.of_conditions;
    for (const UnknownPart& part : script.unknown_parts) {
      const bool is_listed = std::find(open.begin(), open.end(), part.name) != open.end();
      if (part.command == c && part.word > line.before.size() && !is_listed) {
        open.push_back(part.name);
      }
    }
    note_what_is_open(open, script, line.notes);
    return line;
  }
  return std::nullopt;
}

}  // namespace braid
