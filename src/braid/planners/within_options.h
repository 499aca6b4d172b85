#pragma once

#include <string_view>

#include "braid/planners/job/job.h"

namespace braid {

/// The space that is left of `space` where the job's layers have a finite list of options: their
/// micro-batch, where they have but one; where they state their memory or gradients, nothing that
/// would shard or move these. The list is said in SpaceOptions::listed. Throws Error, naming the
/// planner and the first layer that lacks them, when there are no options that the planner starts
/// from: `start`, or what the space fixes, for every layer, with the degrees that are fixed.
SpaceOptions within_options(const Job& job, const LayerOptions& layers, SpaceOptions space,
                            Recompute start, std::string_view planner);

}  // namespace braid
