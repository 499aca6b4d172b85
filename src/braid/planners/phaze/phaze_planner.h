#pragma once

#include "braid/planners/job/job.h"
#include "braid/planners/phaze/objective.h"

namespace braid {

/// A space and what the planner phaze makes least.
struct PhazeJobSpace : SpaceOptions {
  PhazeObjective objective = PhazeObjective::flush;
};

/// Phaze's placement (Adnan et al. 2024, §5) on a homogeneous system taken for a flat network of
/// its slowest links: one tp, pp, dp and micro-batch size, all layers recomputed or none, stages
/// exact for space.objective (planners/phaze/objective.h) within braid's memory. The plan's times
/// by all three stand beside the objective.
Outcome plan_phaze(const Job& job, const System& system, const PhazeJobSpace& space,
                   const Budget& budget, const Progress& progress = {});

}  // namespace braid
