#pragma once

#include "braid/planners/piper/problem.h"
#include "braid/profile/estimator.h"
#include "braid/profile/profile.h"

namespace braid {

/// The layers, options and edges of a profile as a piper problem; limits and rules are left as they
/// are by default. Options keep their order within a tensor-parallel degree; those that split a
/// layer in other ways too (context, experts), move state to the host or are for another
/// micro-batch than `micro_batch` are left out. Where the profile does not state fixed memory or
/// gradients, they follow from the parameters: weights, gradients and optimizer state of
/// `precision`, nothing sharded. Throws Error for a layer that has no option left.
PiperProblem piper_from_profile(const Profile& profile, int micro_batch,
                                const Precision& precision = {});

/// Whether an option is one of these.
bool piper_can_use(const Option& option, int micro_batch);

/// Whether every option states its fixed memory and gradients.
bool states_memory(const Profile& profile);

}  // namespace braid
