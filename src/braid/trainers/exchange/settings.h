#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "braid/trainers/exchange/given_arguments.h"
#include "braid/trainers/exchange/import.h"

namespace braid {

/// "name = value", "name=value" or "name: value" of a text.
struct Setting {
  std::string name, value;
  int line = 0;  ///< Of the text; 0: not known.
};

/// All settings of a text, in their order, without running anything: assignments (with a type or
/// without) and keyword arguments of Python, lines of flat or nested YAML (nesting is left out),
/// key=value words of a command line. Comments are skipped, quotes around a value taken off; a list
/// keeps its brackets. A setting without a value is left out. Cost: linear.
///
///     settings_of("cfg.model.seq_length = 4096  # tokens").front().value;  // "4096"
std::vector<Setting> settings_of(std::string_view text);

/// The settings as a reader asks for them: "--name" for each.
GivenArguments as_arguments(const std::vector<Setting>& settings, const std::string& file);

/// Whether a setting is there and says yes: true, True, yes, 1.
bool is_on(GivenArguments& given, std::string_view name);

/// Adds those of `usual` that are not given to run.not_given.
void note_usual_settings(const GivenArguments& given, std::span<const UsualSetting> usual,
                         Import& run);

/// GivenArguments::unknown() as settings are written: "name=value".
std::vector<std::string> unknown_settings(const GivenArguments& given);

}  // namespace braid
