#pragma once

#include <string>

#include "braid/plan/plan.h"
#include "braid/trainers/exchange/export.h"
#include "braid/trainers/exchange/trained_job.h"

namespace braid {

/// Of models that are not known to be among its own, and of precisions that it has not.
JobRefusal maxtext_refusal(const TrainedJob& job);

/// A plan for MaxText, as a YAML file over its base.yml, with the line that starts it.
/// Throws Error for what MaxText cannot run.
Export export_maxtext(const Plan& plan, const std::string& file = "");

}  // namespace braid
