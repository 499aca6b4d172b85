#pragma once

#include "braid/trainers/exchange/export.h"

namespace braid {

/// torchtitan's TOML configuration. Precondition: the plan is uniform.
Export export_torchtitan(const Plan& plan);

}  // namespace braid
