#pragma once

#include "braid/planners/job/job.h"

namespace braid {

/// AMP (Li et al. 2022) on a homogeneous system, where its placement order is braid's default
/// (others: planners/amp/mixed_planner.h):
/// every pp, dp, tp and micro-batch size, layers assigned exactly for AMP's model of a pipeline,
/// within memory (see planners/amp/amp_job.h). The objective is AMP's cost.
Outcome plan_amp(const Job& job, const System& system, const SpaceOptions& space,
                 const Budget& budget, const Progress& progress = {});

/// AMP's simulated annealing over the same strategies and both orders of the axes: 2 chains of 50
/// steps, fixed seeds.
Outcome plan_amp_sa(const Job& job, const System& system, const SpaceOptions& space,
                    const Budget& budget, const Progress& progress = {});

/// The best by AMP's cost of 100 of them drawn at random, fixed seed.
Outcome plan_random(const Job& job, const System& system, const SpaceOptions& space,
                    const Budget& budget, const Progress& progress = {});

}  // namespace braid
