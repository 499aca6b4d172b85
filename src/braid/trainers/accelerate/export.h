#pragma once

#include "braid/plan/plan.h"
#include "braid/trainers/exchange/export.h"

namespace braid {

/// A plan for Hugging Face Accelerate, as the YAML file that `accelerate launch` takes: FSDP2 and
/// ParallelismConfig. Throws Error for what Hugging Face Accelerate cannot run.
Export export_accelerate(const Plan& plan);

}  // namespace braid
