#pragma once

#include <string>
#include <vector>

#include "braid/plan/plan.h"

namespace braid {

/// How layers of the plan are sharded over tensor-parallel ranks where the model does not say so,
/// a line for each way of running a kind of layer, in order of first use: "48x block0 tp4:sharded:
/// attention.qkv column, …". Empty when all are sharded as the model says.
std::vector<std::string> sharding_text(const Plan& plan);

}  // namespace braid
