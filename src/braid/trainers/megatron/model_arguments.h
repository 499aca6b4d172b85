#pragma once

#include <string>
#include <vector>

#include "braid/plan/plan.h"
#include "braid/trainers/megatron/arguments.h"

namespace braid {

/// All that the script must be told of the plan's model, which has a shape; `warnings` take one
/// sentence for each part of it that has no argument.
void add_model(const Plan& plan, MegatronArguments& arguments, std::vector<std::string>& warnings);

}  // namespace braid
