#pragma once

#include <string_view>
#include <vector>

#include "braid/trainers/exchange/settings.h"

namespace braid {

/// What a Python recipe of torchtitan sets, by the names that its TOML has ("parallelism.…",
/// "training.…", "model.flavor", "activation_checkpoint.mode"), without running anything: keyword
/// arguments of ParallelismConfig, TrainingConfig and CompileConfig, assignments to
/// `x.parallelism.…` and the like, the policy of recomputation, the arguments of model_registry and
/// the module that it is imported from. Products of whole numbers are multiplied out. Cost: linear
/// in the text for each level of brackets.
std::vector<Setting> torchtitan_recipe_settings(std::string_view text);

}  // namespace braid
