#pragma once

#include <string>

#include "braid/plan/plan.h"
#include "braid/trainers/exchange/export.h"
#include "braid/trainers/exchange/trained_job.h"

namespace braid {

/// Of models that are no decoders of text, and of precisions that it has not.
JobRefusal megatron_bridge_refusal(const TrainedJob& job);

/// A plan as a Python script for Megatron-Bridge, which takes the model's shape from Hugging Face's
/// config.json. Throws Error for what Megatron-Bridge cannot run.
Export export_megatron_bridge(const Plan& plan, const std::string& file = "");

}  // namespace braid
