#include "braid/trainers/torchtitan/command_line.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "braid/base/error.h"
#include "braid/base/text.h"
#include "braid/trainers/exchange/export.h"
#include "braid/trainers/exchange/open_script.h"
#include "braid/trainers/exchange/shell_script.h"
#include "braid/trainers/exchange/started_processes.h"

namespace braid {
namespace {

bool is_program(std::string_view word) {
  constexpr std::array<std::string_view, 3> kPrograms = {"torchtitan.train", "torchtitan/train.py",
                                                         "run_train.sh"};
  return std::any_of(kPrograms.begin(), kPrograms.end(),
                     [&](std::string_view program) { return word.ends_with(program); });
}

/// "--compile.no-enable" says no to compile.enable.
Setting setting_of(std::string_view option, std::optional<std::string> value) {
  std::string name(option.substr(2));
  std::replace(name.begin(), name.end(), '-', '_');
  const std::size_t negated = name.rfind(".no_");
  if (!value && negated != std::string::npos) {
    name.erase(negated + 1, 3);
    value = "false";
  }
  return {std::move(name), value.value_or("true"), 0};
}

void take(Setting setting, TorchtitanCommand& command) {
  if (setting.name == "job.config_file") {
    command.config_file = setting.value;
  } else if (setting.name == "module") {
    command.module = setting.value;
  } else if (setting.name == "config") {
    command.recipe = setting.value;
  } else {
    command.settings.push_back(std::move(setting));
  }
}

void read_arguments(std::span<const std::string> words, TorchtitanCommand& command) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (!word.starts_with("--")) continue;
    const std::size_t sign = word.find('=');
    if (sign != std::string::npos) {
      take(setting_of(word.substr(0, sign), word.substr(sign + 1)), command);
      continue;
    }
    std::optional<std::string> value;
    while (i + 1 < words.size() && !words[i + 1].starts_with("--")) {
      value = value ? *value + " " + words[i + 1] : words[i + 1];
      ++i;
    }
    take(setting_of(word, value), command);
  }
}

/// Processes that the script of torchtitan starts, as a variable of the environment says; 0: it
/// does not.
std::int64_t processes_of_script(const ShellScript& script) {
  const auto said = script.variables.find("NGPU");
  if (said == script.variables.end()) return 0;
  const std::vector<std::string> words = {"--nproc-per-node=" +
                                          without_marks(joined(said->second))};
  return processes_started(words, "");
}

/// The script of torchtitan takes its file, or the module and its recipe, and how many processes it
/// starts from variables of the environment.
void take_environment(const ShellScript& script, bool is_script, TorchtitanCommand& command) {
  const auto take = [&](const std::string& name, std::string& value) {
    const auto said = script.variables.find(name);
    if (said != script.variables.end()) value = without_marks(joined(said->second));
  };
  take("CONFIG_FILE", command.config_file);
  if (!is_script) return;
  take("MODULE", command.module);
  take("CONFIG", command.recipe);
  command.devices = processes_of_script(script);
}

}  // namespace

bool is_torchtitan_command(std::string_view text) {
  // People call scripts of other trainers so, too.
  constexpr std::array<std::string_view, 6> kOwn = {
      "--training.", "--parallelism.", "CONFIG_FILE=", "NGPU=", "--module", "MODULE="};
  const bool has_own = std::any_of(kOwn.begin(), kOwn.end(),
                                   [&](std::string_view sign) { return contains(text, sign); });
  const auto starts_it = [&](std::string_view line) {
    constexpr std::string_view kModule = "torchtitan.train";
    const std::size_t at = line.find(kModule);
    const bool names_it =
        at != std::string_view::npos && line.substr(at + kModule.size(), 1) != "e";
    return names_it || contains(line, "torchtitan/train.py") ||
           (has_own && contains(line, "run_train.sh"));
  };
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t first = line.find_first_not_of(" \t");
    if (first != std::string_view::npos && line[first] != '#' && starts_it(line)) return true;
  }
  return false;
}

TorchtitanCommand torchtitan_command(std::string_view text, const std::string& file,
                                     const ImportChoice& choice) {
  const ShellScript script = read_script_with_sourced(text, file, choice);
  for (std::size_t c = 0; c < script.commands.size(); ++c) {
    const ShellCommand& words = script.commands[c];
    const auto program = std::find_if(words.begin(), words.end(), is_program);
    if (program == words.end()) continue;
    TorchtitanCommand command;
    const std::span<const std::string> all(words);
    const auto before = static_cast<std::size_t>(program - words.begin());
    command.devices = processes_started(all.first(before), file);
    take_environment(script, program->ends_with("run_train.sh"), command);
    read_arguments(all.subspan(before + 1), command);
    std::vector<std::string> open = script.of_conditions;
    for (const UnknownPart& part : script.unknown_parts) {
      const bool is_listed = std::find(open.begin(), open.end(), part.name) != open.end();
      if (part.command == c && part.word > before && !is_listed) open.push_back(part.name);
    }
    note_what_is_open(open, script, command.notes);
    return command;
  }
  throw Error(Where{file, 0, ""}, "no command starts torchtitan",
              "give the line with torchtitan.train, or its launch script");
}

}  // namespace braid
