#pragma once

#include <string_view>

#include "braid/planners/planner.h"

namespace braid {

/// Plans a job for Piper's time per sample (piper_problem.h, the published program's rules) by the
/// variant of that name: piper, no-dp, no-tp, no-ar, equi, equi-no-tp, pipedream, dp-only, tp-only.
///
/// A plan's stages share their degrees, micro-batch and recomputation, so these are searched one by
/// one, and for each the layers are cut by the variant's own method, exactly but for equi and
/// pipedream: any contiguous sets of the layer graph, 1F1B, any number of stages. Memory is the
/// shared model's, the largest transient of any layer being kept free on every device; the network
/// is flat, at the rate of its outermost level. Throws Error for mixed clusters;
/// with restrictions that leave this space nothing is feasible.
Outcome plan_piper(std::string_view variant, const Job& job, const System& system,
                   const SpaceOptions& space, const Budget& budget, const Progress& progress = {});

}  // namespace braid
