#pragma once

#include "braid/trainers/exchange/export.h"

namespace braid {

/// DeepSpeed's JSON configuration. Precondition: the plan is uniform.
Export export_deepspeed(const Plan& plan);

}  // namespace braid
