#pragma once

#include "braid/plan/parallelism.h"
#include "braid/planners/job/job.h"

namespace braid {

/// Restricts a space to the degrees, the micro-batch and the schedule of `parallel`; vp is left as
/// it is.
void fix_degrees(const Parallelism& parallel, SpaceOptions& space);

}  // namespace braid
