#pragma once

#include "braid/planners/phaze/problem.h"
#include "braid/profile/estimator.h"
#include "braid/profile/profile.h"

namespace braid {

/// A profile of braid's or Piper's format as Phaze's placement takes it; devices, memory, bandwidth
/// and micro-batches are left as they are by default. A width is a tensor-parallel degree for which
/// every layer has a plain option: nothing recomputed, no context or expert parallelism, no state
/// moved to the host; of several (with and without sequence parallelism) the fastest. Recomputation
/// is Phaze's: a stage keeps its inputs and repeats its forward pass. Times are multiplied by
/// `time_unit_s`. What profiles have and Phaze does not:
///  - passes in one figure (Piper's files): the forward pass is what the layer's option with full
///    recomputation adds, or a third where there is none;
///  - re-layout of the tensor on an edge: the mean of both directions is added to its bytes;
///  - fixed memory and gradients: as stated, else they follow from the parameters with weights,
///    gradients and optimizer state of `precision`, nothing sharded.
/// Throws Error when a layer has no plain option, no degree has one for every layer, or options
/// are for several micro-batch sizes.
PhazeProblem phaze_from_profile(const Profile& profile, double time_unit_s,
                                const Precision& precision = {});

}  // namespace braid
