#pragma once

#include "braid/planners/job/braid_space.h"
#include "braid/planners/job/job.h"

namespace braid {

/// braid's planner on homogeneous systems: best-first by bound over the documented space
/// (docs/design.md, "braid").
Outcome plan_uniform(const Job& job, const System& system, const BraidSpace& space,
                     const Budget& budget, const Progress& progress = {});

/// What of the same space uses all devices, every configuration evaluated whether it can be best or
/// not: what the planner `braid` is held against, and how large its space is.
Outcome plan_exhaustively(const Job& job, const System& system, const SpaceOptions& space,
                          const Budget& budget, const Progress& progress = {});

/// Megatron-LM's published rule of thumb (Narayanan et al. 2021, §3): tensor parallelism up to the
/// node, then pipeline until the model fits, data parallelism with the rest. The rule leaves the
/// micro-batch, the recomputation, the split of experts and whether replicas share the optimizer's
/// state (ZeRO-1) open: it is followed with every choice of these, and the fastest plan of all is
/// taken.
Outcome plan_megatron(const Job& job, const System& system, const SpaceOptions& space,
                      const Budget& budget, const Progress& progress = {});

/// The same rule with micro-batches of one sample, full recomputation and experts that are not
/// split, unless the restrictions say otherwise.
Outcome plan_megatron_rule(const Job& job, const System& system, const SpaceOptions& space,
                           const Budget& budget, const Progress& progress = {});

}  // namespace braid
