#include "braid/trainers/deepspeed/start_line.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <sstream>

#include "braid/base/error.h"
#include "braid/base/text.h"
#include "braid/trainers/exchange/found_file.h"
#include "braid/trainers/exchange/given_arguments.h"
#include "braid/trainers/exchange/hf_arguments.h"
#include "braid/trainers/exchange/open_script.h"
#include "braid/trainers/exchange/signs.h"

namespace braid {
namespace {

constexpr std::string_view kConfigOption = "--deepspeed_config";
constexpr std::string_view kTrainerOption = "--deepspeed";

/// What `words` say behind one of the options, or in it behind '='; empty: nothing.
std::string named_settings(const std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    const std::string name = words[i].substr(0, equals);
    if (name != kConfigOption && name != kTrainerOption) continue;
    if (equals != std::string::npos) return words[i].substr(equals + 1);
    if (i + 1 < words.size() && !words[i + 1].starts_with('-')) return words[i + 1];
  }
  return "";
}

/// Whether a line calls DeepSpeed's launcher, behind variables of its own.
bool calls_launcher(const std::string& line) {
  std::istringstream words(line);
  std::string word;
  while (words >> word && contains(word, "=") && !word.starts_with('-')) {
  }
  return word == "deepspeed" || word.ends_with("/deepspeed");
}

/// Whether a line of the text calls the launcher, or names a file of settings.
bool starts_deepspeed(std::string_view text) {
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    if (calls_launcher(line)) return true;
    std::istringstream words(line);
    std::string first;
    if (!(words >> first) || first.starts_with('#')) continue;
    std::vector<std::string> all = {first};
    for (std::string word; words >> word;) all.push_back(word);
    if (!named_settings(all).empty()) return true;
  }
  return false;
}

/// A setting that is filled in from a flag.
struct FilledIn {
  std::string_view setting, argument;
};
constexpr FilledIn kFlags[] = {{"bf16.enabled", "--bf16"}, {"fp16.enabled", "--fp16"}};

}  // namespace

bool is_deepspeed_start(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || text[first] == '{') return false;
  return starts_deepspeed(text) && !has_sign(text, {"pretrain_", "-size", "--num-layers"});
}

DeepspeedStart deepspeed_start(std::string_view text, const std::string& file,
                               const ImportChoice& choice) {
  const ShellScript script = read_script_with_sourced(text, file, choice);
  for (const ShellCommand& words : script.commands) {
    const std::string named = named_settings(words);
    if (named.empty()) continue;
    const std::string path = found_file(named, file);
    if (path.empty()) {
      throw Error(Where{file, 0, std::string(kConfigOption)},
                  in_quotes(named) + ": there is no such file",
                  "give it from its folder, or put it beside the script");
    }
    const auto program = std::find_if(
        words.begin(), words.end(), [](const std::string& word) { return word.ends_with(".py"); });
    return {path,
            {words.begin(), program},
            {program == words.end() ? program : program + 1, words.end()}};
  }
  throw Error(Where{file, 0, ""},
              "this starts DeepSpeed and names no file of its settings, as --deepspeed_config does",
              "give that JSON file");
}

void take_trainer_arguments(const ShellCommand& arguments, const std::string& file,
                            std::vector<Setting>& settings, Import& run) {
  GivenArguments given(arguments, file);
  const std::int64_t micro = micro_batch_of_hf(given), steps = accumulation_of_hf(given);
  for (Setting& setting : settings) {
    if (setting.value != "auto") continue;
    const auto fill = [&setting](std::string_view name, std::int64_t count) {
      if (setting.name == name && count > 0) setting.value = std::to_string(count);
    };
    // per_device_train_batch_size of TrainingArguments is 8 where nothing is said.
    constexpr std::int64_t kUsual = 8;
    fill("train_micro_batch_size_per_gpu", micro > 0 ? micro : kUsual);
    fill("gradient_accumulation_steps", steps);
    for (const auto& [name, argument] : kFlags) {
      if (setting.name == name && is_set_for_hf(given, argument)) setting.value = "true";
    }
  }
  take_hf_arguments(given, run);
  constexpr std::array<std::string_view, 3> kOfSettings = {"--bf16", "--fp16", "--tf32"};
  given.ignore(kOfSettings);
  run.unknown = given.unknown();
}

}  // namespace braid
