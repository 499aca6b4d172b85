#pragma once

#include <string>

#include "braid/plan/trainer.h"
#include "braid/planners/job/job.h"

namespace braid {

/// Why a trainer with these limits cannot be told what is fixed, as "has no pipelines"; empty when
/// it can. What is not fixed is no reason. `known`: traits that every form of the space is without,
/// beside those that are fixed.
std::string refusal_of_fixed(const TrainerLimits& can, const SpaceOptions& space,
                             FormTraits known = 0);

}  // namespace braid
