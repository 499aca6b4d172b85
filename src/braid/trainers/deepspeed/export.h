#pragma once

#include <string>

#include "braid/trainers/exchange/export.h"
#include "braid/trainers/exchange/trained_job.h"

namespace braid {

/// Of precisions that its file has not.
JobRefusal deepspeed_refusal(const TrainedJob& job);

/// DeepSpeed's JSON configuration (0.19), and the line that starts a run with it. Precondition: the
/// plan is uniform. Throws Error for what DeepSpeed refuses, naming the option that fixes it.
Export export_deepspeed(const Plan& plan, const std::string& file = "");

}  // namespace braid
