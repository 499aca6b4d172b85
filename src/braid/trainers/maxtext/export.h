#pragma once

#include "braid/plan/plan.h"
#include "braid/trainers/exchange/export.h"

namespace braid {

/// A plan for MaxText, as a YAML file over its base.yml, with the line that starts it.
/// Throws Error for what MaxText cannot run.
Export export_maxtext(const Plan& plan);

}  // namespace braid
