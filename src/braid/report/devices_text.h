#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "braid/plan/plan.h"

namespace braid {

/// "12 × v100-sxm-16gb + 4 × t4".
std::string devices_text(const System& system);

/// Numbers of a stage's devices, "0-3,12-15", where its plan is not uniform; else "0 … 3".
std::string stage_devices_text(const Plan& plan, std::size_t stage);

/// Chips of a stage's devices in the system's order, each once.
std::vector<std::string> stage_chips(const Plan& plan, std::size_t stage);

/// "4 devices stay unused: 12-15 (t4)", or empty when the plan uses all.
std::string unused_text(const Plan& plan);

}  // namespace braid
