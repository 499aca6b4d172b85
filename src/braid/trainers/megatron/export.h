#pragma once

#include <string>

#include "braid/trainers/exchange/export.h"

namespace braid {

/// torchrun line with Megatron-LM's arguments. Precondition: the plan is uniform.
Export export_megatron(const Plan& plan, const std::string& file = "");

}  // namespace braid
