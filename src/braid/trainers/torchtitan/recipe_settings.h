#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "braid/trainers/exchange/settings.h"

namespace braid {

/// What a Python recipe of torchtitan sets.
struct RecipeSettings {
  /// By the names that the TOML has ("parallelism.…", "training.…", "model.flavor",
  /// "activation_checkpoint.mode"), in the order in which they are set.
  std::vector<Setting> settings;
  /// Recipes of other files that it begins with, "llama3_8b() of torchtitan.models.llama3.…".
  std::vector<std::string> from_elsewhere;
};

/// The recipes of a file: functions without arguments that give a trainer's configuration. Empty
/// where settings stand in it otherwise.
std::vector<std::string> torchtitan_recipes(std::string_view text);

/// What the recipe `name` of the file sets, or with no name all that the file does, without running
/// anything: keyword arguments of ParallelismConfig, TrainingConfig and CompileConfig, assignments
/// to `x.parallelism.…` and the like, the policy of recomputation, the arguments of model_registry
/// and the module that it is imported from; also where functions of the file do so that the recipe
/// calls. Products of whole numbers and of names that stand for them are multiplied out. Cost:
/// linear in the text for each level of brackets, and in what functions that are called set.
RecipeSettings torchtitan_recipe_settings(std::string_view text, std::string_view name = {});

}  // namespace braid
