#pragma once

#include <string_view>

#include "braid/planners/job/family_options.h"
#include "braid/planners/job/job.h"
#include "braid/planners/phaze/objective.h"

namespace braid {

/// A space and what the planner phaze makes least.
struct PhazeJobSpace : SpaceOptions {
  PhazeObjective objective = PhazeObjective::flush;
};

inline constexpr std::string_view kPhazeObjectiveWords[] = {"flush", "simulated", "program"};
inline constexpr FamilyOption kPhazeOptionList[] = {
    {"objective",
     "The time that phaze minimises: flush (its formula, corrected; the default), simulated, or "
     "program (as published)",
     kPhazeObjectiveWords}};
inline constexpr FamilyOptions kPhazeOptions{"Planner phaze", kPhazeOptionList};

/// The space with what words for kPhazeOptions say.
PhazeJobSpace phaze_space(const SpaceOptions& space, const FamilyWords& words);

/// Phaze's placement (Adnan et al. 2024, §5) on a homogeneous system taken for a flat network of
/// its slowest links: one tp, pp, dp and micro-batch size, all layers recomputed or none, stages
/// exact for space.objective (planners/phaze/objective.h) within braid's memory. The plan's times
/// by all three stand beside the objective.
Outcome plan_phaze(const Job& job, const System& system, const PhazeJobSpace& space,
                   const Budget& budget, const Progress& progress = {});

}  // namespace braid
