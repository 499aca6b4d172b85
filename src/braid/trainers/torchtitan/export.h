#pragma once

#include <string>

#include "braid/trainers/exchange/export.h"

namespace braid {

/// torchtitan's TOML configuration (0.2.2), and the line that starts a run with it. Precondition:
/// the plan is uniform. Throws Error for what torchtitan cannot run, naming the option that fixes
/// it.
Export export_torchtitan(const Plan& plan, const std::string& file = "");

}  // namespace braid
