#include "braid/trainers/megatron-bridge/recipe_source.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>

#include "braid/base/text.h"
#include "braid/trainers/exchange/chosen_recipe.h"
#include "braid/trainers/exchange/export.h"
#include "braid/trainers/exchange/open_script.h"
#include "braid/trainers/exchange/python_functions.h"

namespace braid {
namespace {

constexpr std::array<std::string_view, 14> kSections = {
    "model.",          "train.",       "ddp.",       "optimizer.", "dataset.", "dist.",
    "scheduler.",      "checkpoint.",  "tokenizer.", "rng.",       "logger.",  "validation.",
    "mixed_precision", "comm_overlap."};

/// Options of run_recipe.py and what they set; nothing where that changes neither time nor memory
/// (scripts/training/run_recipe.py).
struct RecipeOption {
  std::string_view option, short_form, setting;
};
constexpr RecipeOption kRecipeOptions[] = {
    {"max_steps", "ms", "train.train_iters"},
    {"global_batch_size", "gb", "train.global_batch_size"},
    {"micro_batch_size", "mb", "train.micro_batch_size"},
    {"seq_length", "sl", "dataset.seq_length"},
    {"tensor_model_parallel_size", "tp", "model.tensor_model_parallel_size"},
    {"pipeline_model_parallel_size", "pp", "model.pipeline_model_parallel_size"},
    {"context_parallel_size", "cp", "model.context_parallel_size"},
    {"virtual_pipeline_model_parallel_size", "vp", "model.virtual_pipeline_model_parallel_size"},
    {"expert_model_parallel_size", "ep", "model.expert_model_parallel_size"},
    {"expert_tensor_parallel_size", "etp", "model.expert_tensor_parallel_size"},
    {"lr", "", "optimizer.lr"},
    {"min_lr", "", "optimizer.min_lr"},
    {"warmup_iters", "", "scheduler.lr_warmup_iters"},
    {"pretrained_checkpoint", "", "checkpoint.pretrained_checkpoint"},
    {"save_dir", "", "checkpoint.save"},
    {"load_dir", "", "checkpoint.load"},
    {"save_interval", "", "checkpoint.save_interval"},
    {"dataset", "", ""},
    {"step_func", "", ""},
    {"dry_run", "", ""},
    {"dump_env", "", ""}};

/// The words behind run_recipe.py; empty where the text is no such command line.
ShellCommand recipe_words(std::string_view text, const std::string& file,
                          const ImportChoice& choice) {
  if (!contains(text, "run_recipe.py") || contains(text, "import ")) return {};
  const ShellScript script = read_script_with_sourced(text, file, choice);
  for (const ShellCommand& outer : script.commands) {
    std::vector<ShellCommand> all = inner_commands(outer, script, file);
    all.insert(all.begin(), outer);
    for (const ShellCommand& command : all) {
      const auto found = std::find_if(command.begin(), command.end(), [](const std::string& word) {
        return word.ends_with("run_recipe.py");
      });
      if (found != command.end()) return {found + 1, command.end()};
    }
  }
  return {};
}

/// One option with its value, if it has one.
void take_option(std::string name, const std::string& value, BridgeSource& source) {
  std::replace(name.begin(), name.end(), '-', '_');
  if (name == "model" || name == "recipe") {
    source.notes.push_back("--" + name + " " + on_one_line(value) +
                           ": the recipe's own settings are not read; what this line leaves out is "
                           "as listed above, which may be otherwise in the recipe");
    source.leaves_recipe = true;
    return;
  }
  if (name == "mode") {
    if (value == "lora" || value == "dora") {
      source.notes.push_back("--mode " + value +
                             ": adapters alone are trained; here all weights are");
    }
    return;
  }
  for (const RecipeOption& each : kRecipeOptions) {
    if (name != each.option && (each.short_form.empty() || name != each.short_form)) continue;
    if (!each.setting.empty()) source.settings.push_back({std::string(each.setting), value, 0});
    return;
  }
  source.unknown.push_back(on_one_line("--" + name + (value.empty() ? "" : " " + value)));
}

/// What the options of a command line set, "-tp 4" and "--tensor_model_parallel_size=4" alike.
void read_options(const ShellCommand& words, BridgeSource& source) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const std::size_t begin = word.find_first_not_of('-');
    if (begin == 0 || begin == std::string::npos) continue;
    std::string name = word.substr(begin);
    std::string value;
    if (const std::size_t sign = name.find('='); sign != std::string::npos) {
      value = name.substr(sign + 1);
      name.erase(sign);
    } else if (i + 1 < words.size() && !words[i + 1].starts_with('-') &&
               words[i + 1].find('=') == std::string::npos) {
      value = words[i + 1];
    }
    take_option(std::move(name), value, source);
  }
}

/// Assignments to fields of a configuration, and overrides of a command line.
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

}  // namespace

BridgeSource bridge_source(std::string_view text, const std::string& file,
                           const ImportChoice& choice) {
  BridgeSource source;
  const std::string& recipe = choice.recipe;
  const ShellCommand words = recipe_words(text, file, choice);
  read_options(words, source);
  const std::string chosen =
      words.empty() ? chosen_recipe(recipes_of(text), recipe, file) : std::string();
  if (!words.empty() && !recipe.empty()) refuse_recipe_choice(file);
  if (!words.empty()) {
    for (const std::string& word : words) source.text += word + "\n";
  } else {
    source.text = chosen.empty() ? std::string(text) : python_call_text(text, chosen);
  }
  read_assignments(source.text, source);
  if (words.empty()) {
    read_overlap(source.text, source);
    note_other_recipes(text, source);
  }
  return source;
}

}  // namespace braid
