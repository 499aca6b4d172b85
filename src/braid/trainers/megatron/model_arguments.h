#pragma once

#include <string>
#include <vector>

#include "braid/plan/plan.h"
#include "braid/trainers/megatron/arguments.h"

namespace braid {

/// Whether the model is a hybrid of state-space, attention and feed-forward layers, which
/// pretrain_hybrid.py trains and not pretrain_gpt.py.
bool is_hybrid(const Plan& plan);

/// All that the script must be told of the plan's model, which has a shape; `warnings` take one
/// sentence for each part of it that has no argument.
void add_model(const Plan& plan, MegatronArguments& arguments, std::vector<std::string>& warnings);

}  // namespace braid
