#pragma once

#include "braid/planners/job/job.h"

namespace braid {

/// The planners amp, amp-sa and random on systems that are not homogeneous (AmpMixedJob). The
/// objective is AMP's cost.
///
/// amp: place_amp_mixed() with as many partial placements as the budget says (none said: 20,000),
/// so that its outcome has a bound.
Outcome plan_amp_mixed(const Job& job, const System& system, const SpaceOptions& space,
                       const Budget& budget, const Progress& progress);
/// amp-sa: simulated annealing, 2 chains of 50 steps with fixed seeds, over the degrees and
/// micro-batch sizes and random tilings of the nodes (random_tiling) by the stages' shard groups.
/// Where nodes differ in size the shard groups are drawn in random order instead.
Outcome plan_amp_sa_mixed(const Job& job, const System& system, const SpaceOptions& space,
                          const Budget& budget, const Progress& progress);
/// random: the best of 100 configurations with their shard groups in random order, fixed seed.
Outcome plan_random_mixed(const Job& job, const System& system, const SpaceOptions& space,
                          const Budget& budget, const Progress& progress);

}  // namespace braid
