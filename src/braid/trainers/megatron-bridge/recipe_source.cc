#include "braid/trainers/megatron-bridge/recipe_source.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>

#include "braid/base/text.h"
#include "braid/trainers/exchange/chosen_recipe.h"
#include "braid/trainers/exchange/export.h"
#include "braid/trainers/exchange/open_script.h"
#include "braid/trainers/exchange/python_functions.h"
#include "braid/trainers/exchange/started_processes.h"
#include "braid/trainers/megatron-bridge/command_options.h"

namespace braid {
namespace {

constexpr std::array<std::string_view, 14> kSections = {
    "model.",          "train.",       "ddp.",       "optimizer.", "dataset.", "dist.",
    "scheduler.",      "checkpoint.",  "tokenizer.", "rng.",       "logger.",  "validation.",
    "mixed_precision", "comm_overlap."};

/// The command that starts a recipe; none where the text is no such command line.
struct RecipeCommand {
  ShellCommand before, words;  ///< Before the program's own word, and behind it.
};

std::optional<RecipeCommand> recipe_command(std::string_view text, const std::string& file,
                                            const ImportChoice& choice) {
  if (!contains(text, "run_recipe.py") && !contains(text, "setup_experiment.py") &&
      !contains(text, "run_script.py")) {
    return std::nullopt;
  }
  if (contains(text, "import ")) return std::nullopt;
  const ShellScript script = read_script_with_sourced(text, file, choice);
  for (const ShellCommand& outer : script.commands) {
    std::vector<ShellCommand> all = inner_commands(outer, script, file);
    all.insert(all.begin(), outer);
    for (const ShellCommand& command : all) {
      const auto found = std::find_if(command.begin(), command.end(), is_bridge_program);
      if (found != command.end()) {
        return RecipeCommand{{command.begin(), found}, {found + 1, command.end()}};
      }
    }
  }
  return std::nullopt;
}

/// Assignments to fields of a configuration.
void read_assignments(std::string_view text, BridgeSource& source) {
  std::map<std::string, std::string, std::less<>> names;  // That stand for a value.
  for (Setting& each : settings_of(text)) {
    bool is_field = false;
    if (!contains(each.name, ".")) names[each.name] = each.value;
    if (const auto known = names.find(each.value); known != names.end()) {
      each.value = known->second;
    }
    for (const std::string_view root : {"cfg.", "config.", "recipe."}) {
      if (!each.name.starts_with(root)) continue;
      each.name.erase(0, root.size());
      is_field = true;
    }
    for (const std::string_view section : kSections) {
      if (each.name.starts_with(section)) is_field = true;
    }
    if (is_field) source.settings.push_back(std::move(each));
  }
}

/// What stands in the brackets of CommOverlapConfig.
void read_overlap(std::string_view text, BridgeSource& source) {
  constexpr std::string_view kCall = "CommOverlapConfig(";
  for (std::size_t at = text.find(kCall); at != std::string_view::npos;
       at = text.find(kCall, at + 1)) {
    const std::size_t begin = at + kCall.size();
    std::size_t end = begin;
    while (end < text.size() && text[end] != ')') {
      const std::size_t value = end_of_python_value(text, end, true);
      end = text.substr(value, 1) == ")" ? value : value + 1;
    }
    for (Setting& each : settings_of(text.substr(begin, std::min(end, text.size()) - begin))) {
      each.name = "comm_overlap." + each.name;
      source.settings.push_back(std::move(each));
    }
  }
}

/// Whether a function says that it gives a configuration or, where it does not say what it gives,
/// sets a field of one or takes that of another function and hands it on.
bool gives_configuration(std::string_view text, const PythonFunction& function) {
  if (!function.returns.empty()) return function.returns == "ConfigContainer";
  const std::string_view body = text.substr(function.begin, function.end - function.begin);
  for (const std::string_view name : {"cfg", "config", "recipe"}) {
    const std::string field = std::string(name) + ".", result = "return " + std::string(name);
    if (contains(body, field) && contains(body, result)) return true;
  }
  return false;
}

/// Recipes of a file: public functions without arguments that give a ConfigContainer.
std::vector<std::string> recipes_of(std::string_view text) {
  std::vector<std::string> names;
  for (const PythonFunction& each : python_functions(text)) {
    if (each.needs_no_arguments() && !each.name.starts_with('_') &&
        gives_configuration(text, each)) {
      names.emplace_back(each.name);
    }
  }
  return names;
}

/// Names the recipes of other files that a text begins with. What recipes.common sets is what is
/// taken where nothing is said.
void note_other_recipes(std::string_view whole, BridgeSource& source) {
  for (const PythonImport& each : python_imports(whole)) {
    const bool is_recipe = contains(each.module, ".recipes") && !contains(each.module, ".utils") &&
                           !each.module.ends_with(".recipes.common");
    if (!is_recipe) continue;
    if (!calls_python(source.text, each.name)) continue;
    source.notes.push_back(on_one_line(std::string(each.name) + "() of " +
                                       std::string(each.module) +
                                       ": that file is not read; what this one leaves out is as "
                                       "listed above, which may be otherwise there"));
    source.leaves_recipe = true;
  }
}

/// What a recipe that begins with one of these has where it says nothing else
/// (src/megatron/bridge/recipes/common.py).
void take_common_batch(BridgeSource& source) {
  struct Common {
    std::string_view function;
    const char *global_batch, *micro_batch, *seq_len;
  };
  constexpr Common kCommon[] = {{"_pretrain_common", "32", "2", "4096"},
                                {"_sft_common", "128", "1", nullptr},
                                {"_peft_common", "128", "1", nullptr},
                                {"_sft_common_vlm", "32", "2", nullptr},
                                {"_peft_common_vlm", "32", "2", nullptr}};
  for (const Common& each : kCommon) {
    if (!calls_python(source.text, each.function)) continue;
    source.settings.push_back({"train.global_batch_size", each.global_batch, 0});
    source.settings.push_back({"train.micro_batch_size", each.micro_batch, 0});
    if (each.seq_len != nullptr) source.settings.push_back({"dataset.seq_length", each.seq_len, 0});
  }
}

}  // namespace

BridgeSource bridge_source(std::string_view text, const std::string& file,
                           const ImportChoice& choice) {
  BridgeSource source;
  const std::string& recipe = choice.recipe;
  if (const auto command = recipe_command(text, file, choice)) {
    if (!recipe.empty()) refuse_recipe_choice(file);
    for (const std::string& word : command->words) source.text += word + "\n";
    source.devices = processes_started(command->before, file);
    read_bridge_words(command->words, source);
    return source;
  }
  const std::string chosen = chosen_recipe(recipes_of(text), recipe, file);
  source.text = chosen.empty() ? std::string(text) : python_call_text(text, chosen);
  take_common_batch(source);
  read_assignments(source.text, source);
  read_overlap(source.text, source);
  note_other_recipes(text, source);
  return source;
}

}  // namespace braid
