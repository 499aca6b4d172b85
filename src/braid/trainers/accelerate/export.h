#pragma once

#include <string>

#include "braid/plan/plan.h"
#include "braid/trainers/exchange/export.h"
#include "braid/trainers/exchange/trained_job.h"

namespace braid {

/// Of precisions that it has not.
JobRefusal accelerate_refusal(const TrainedJob& job);

/// A plan for Hugging Face Accelerate, as the YAML file that `accelerate launch` takes: FSDP2 and
/// ParallelismConfig. Throws Error for what Hugging Face Accelerate cannot run.
Export export_accelerate(const Plan& plan, const std::string& file = "");

}  // namespace braid
