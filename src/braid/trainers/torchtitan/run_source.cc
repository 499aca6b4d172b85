#include "braid/trainers/torchtitan/run_source.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/file.h"
#include "braid/base/text.h"
#include "braid/trainers/exchange/chosen_recipe.h"
#include "braid/trainers/exchange/found_file.h"
#include "braid/trainers/exchange/nested_settings.h"
#include "braid/trainers/torchtitan/command_line.h"
#include "braid/trainers/torchtitan/recipe_settings.h"

namespace braid {
namespace {

bool is_recipe_text(std::string_view text) {
  constexpr std::array<std::string_view, 4> kSigns = {"from torchtitan", "import torchtitan",
                                                      "Trainer.Config", "TrainingConfig("};
  return std::any_of(kSigns.begin(), kSigns.end(),
                     [&](std::string_view sign) { return contains(text, sign); });
}

/// Keys of the first versions (to 0.1), by those that took their place.
std::vector<Setting> in_todays_words(std::vector<Setting> settings) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kOld = {{
      {"training.batch_size", "training.local_batch_size"},
      {"training.data_parallel_degree", "parallelism.data_parallel_shard_degree"},
      {"training.data_parallel_replicate_degree", "parallelism.data_parallel_replicate_degree"},
      {"training.data_parallel_shard_degree", "parallelism.data_parallel_shard_degree"},
      {"training.tensor_parallel_degree", "parallelism.tensor_parallel_degree"},
      {"training.compile", "compile.enable"},
      {"training.warmup_steps", "lr_scheduler.warmup_steps"},
      {"experimental.context_parallel_degree", "parallelism.context_parallel_degree"},
      {"experimental.pipeline_parallel_degree", "parallelism.pipeline_parallel_degree"},
      {"experimental.pipeline_parallel_schedule", "parallelism.pipeline_parallel_schedule"},
      {"experimental.enable_async_tensor_parallel", "parallelism.enable_async_tensor_parallel"},
      {"checkpoint.enable_checkpoint", "checkpoint.enable"},
  }};
  for (Setting& each : settings) {
    for (const auto& [old, now] : kOld) {
      if (each.name == old) each.name = now;
    }
    if (each.name == "training.enable_loss_parallel") {
      each = {"parallelism.disable_loss_parallel", lowered(each.value) == "true" ? "false" : "true",
              each.line};
    }
    // A key of its own was what is a converter now.
    if (each.name == "float8.enable_float8_linear" && each.value == "true") {
      each = {"model.converters", "float8", each.line};
    }
  }
  return settings;
}

TorchtitanSource recipe_source(std::string_view text, const std::string& file,
                               const std::string& recipe) {
  TorchtitanSource source;
  source.is_recipe = true;
  source.file = file;
  source.recipe = chosen_recipe(torchtitan_recipes(text), recipe, file);
  RecipeSettings read = torchtitan_recipe_settings(text, source.recipe);
  source.settings = std::move(read.settings);
  for (const std::string& other : read.from_elsewhere) {
    source.notes.push_back(other +
                           ": that file is not read; what this one leaves out is as listed above, "
                           "which may be otherwise there");
    source.leaves_recipe = true;
  }
  return source;
}

TorchtitanSource file_source(std::string_view text, const std::string& file,
                             const std::string& recipe) {
  if (is_recipe_text(text)) return recipe_source(text, file, recipe);
  if (!recipe.empty()) refuse_recipe_choice(file);
  TorchtitanSource source;
  source.file = file;
  source.settings = settings_of_toml(text, file);
  return source;
}

/// The file that has what a command line does not say itself. Throws Error where it is not there.
TorchtitanSource named_source(const TorchtitanCommand& command, const std::string& file) {
  std::string name = command.config_file;
  if (name.empty()) {
    name = command.module;
    std::replace(name.begin(), name.end(), '.', '/');
    name += ".py";
  }
  const std::string path = found_file(name, file);
  if (!path.empty()) return file_source(read_file(path), path, command.recipe);
  if (!command.config_file.empty()) {
    throw Error(Where{file, 0, "--job.config_file"}, in_quotes(name) + ": there is no such file",
                "give it from its folder, or put it beside the script");
  }
  throw Error(Where{file, 0, "--config"},
              fmt::format("{} is a recipe of the module {}, which is not here",
                          in_quotes(command.recipe), in_quotes(command.module)),
              "give the file with that function, such as torchtitan/models/" + command.module +
                  "/config_registry.py, and --recipe " + command.recipe);
}

TorchtitanSource command_source(std::string_view text, const std::string& file,
                                const ImportChoice& choice) {
  TorchtitanCommand command = torchtitan_command(text, file, choice);
  if (!choice.recipe.empty()) command.recipe = choice.recipe;
  TorchtitanSource source;
  source.file = file;
  if (!command.config_file.empty() || !command.recipe.empty()) {
    source = named_source(command, file);
  } else if (command.settings.empty()) {
    throw Error(Where{file, 0, ""}, "this command line says nothing of the run",
                "give it with --job.config_file, or the file of its settings");
  }
  source.devices = command.devices;
  source.settings.insert(source.settings.end(), command.settings.begin(), command.settings.end());
  source.notes.insert(source.notes.end(), command.notes.begin(), command.notes.end());
  return source;
}

}  // namespace

TorchtitanSource torchtitan_source(std::string_view text, const std::string& file,
                                   const ImportChoice& choice) {
  const bool is_command = !is_recipe_text(text) && is_torchtitan_command(text);
  TorchtitanSource source =
      is_command ? command_source(text, file, choice) : file_source(text, file, choice.recipe);
  if (!source.is_recipe) source.settings = in_todays_words(std::move(source.settings));
  return source;
}

}  // namespace braid
