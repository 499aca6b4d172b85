#include "braid/trainers/exchange/open_script.h"

#include <algorithm>
#include <cstddef>

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

}  // namespace

ShellScript read_script_with_sourced(std::string_view text, const std::string& file,
                                     const ImportChoice& choice) {
  return read_shell_script(text, file, {}, choice.text_of_file);
}

UnknownValue why_unknown(const std::string& used, const ShellScript& script) {
  const std::string name = on_one_line(used);
  const std::size_t first = name.find_first_not_of("${");
  if (first != std::string::npos && (is_digit(name[first]) || name[first] == '@')) {
    return {name + " is given to the script when it is started", "write its value in its place"};
  }
  const std::vector<std::string>& missing = script.missing_files;
  const auto chooses = std::find_if(
      script.of_conditions.begin(), script.of_conditions.end(), [&used](const std::string& each) {
        return each.size() > 1 && each != used && each[0] == '$' && is_shell_name_start(each[1]);
      });
  if (missing.empty() && chooses != script.of_conditions.end()) {
    return {
        fmt::format("{} is not set in the script, whose conditions depend on {}", name, *chooses),
        fmt::format("set that there, or before it: --from '{}=… bash SCRIPT'", chooses->substr(1))};
  }
  if (missing.empty()) return {name + " is not set in the script", "set it there"};
  return {fmt::format("{} is not set in the script, and {}, which it reads in, is not beside it",
                      name, first_of(missing)),
          "put that file there, or set it in the script"};
}

void note_what_is_open(const std::vector<std::string>& undefined, const ShellScript& script,
                       std::vector<std::string>& notes) {
  const std::vector<std::string>& sourced = script.missing_files;
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
