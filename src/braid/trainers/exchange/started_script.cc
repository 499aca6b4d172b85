#include "braid/trainers/exchange/started_script.h"

#include <algorithm>
#include <array>

#include "braid/base/error.h"
#include "braid/base/text.h"
#include "braid/trainers/exchange/open_script.h"

namespace braid {
namespace {

/// As one word of a shell, whatever is in it.
std::string quoted(const std::string& value) {
  std::string text = "'";
  for (const char c : value) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

constexpr std::array<std::string_view, 4> kEndings = {".sh", ".sbatch", ".slurm", ".bash"};

bool is_script_name(const std::string& word) {
  return !word.starts_with('-') &&
         std::any_of(kEndings.begin(), kEndings.end(),
                     [&](std::string_view ending) { return word.ends_with(ending); });
}

/// Assignments of what a script sees; what is not known, or is a list, it does not.
std::string assignments(const ShellVariables& variables) {
  std::string text;
  for (const auto& [name, value] : variables) {
    const bool is_name =
        is_shell_name_start(name[0]) && std::all_of(name.begin(), name.end(), is_shell_name_part);
    if (is_name && value.size() == 1 && !has_marks(value)) {
      text += "export " + name + "=" + quoted(value.front()) + "; ";
    }
  }
  return text;
}

}  // namespace

std::optional<StartedScript> started_script(std::string_view text, const std::string& file,
                                            const ImportChoice& choice) {
  if (std::none_of(kEndings.begin(), kEndings.end(),
                   [&](std::string_view ending) { return contains(text, ending); })) {
    return std::nullopt;
  }
  try {
    const ShellScript script = read_script_with_sourced(text, file, choice);
    for (const ShellCommand& command : script.commands) {
      if (command.front() == "source" || command.front() == ".") continue;
      const auto name = std::find_if(command.begin(), command.end(), is_script_name);
      if (name == command.end()) continue;
      const std::optional<std::string> inner = choice.text_of(*name);
      if (!inner) continue;
      const bool is_line = script.commands.size() == 1;
      return StartedScript{*name,
                           assignments(is_line ? script.variables : script.exported) + *inner};
    }
  } catch (const Error&) {  // It is no script of a shell.
  }
  return std::nullopt;
}

}  // namespace braid
