#pragma once

#include <string>

#include "braid/trainers/exchange/export.h"

namespace braid {

/// DeepSpeed's JSON configuration (0.19), and the line that starts a run with it. Precondition: the
/// plan is uniform. Throws Error for what DeepSpeed refuses, naming the option that mends it.
Export export_deepspeed(const Plan& plan, const std::string& file = "");

}  // namespace braid
