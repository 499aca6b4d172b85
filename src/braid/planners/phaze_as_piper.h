#pragma once

#include "braid/planners/phaze/problem.h"
#include "braid/planners/piper/problem.h"

namespace braid {

/// A problem of Phaze's placement as Piper's planner takes it, in seconds; rules are left as they
/// are by default. Each layer has, for each width, the option "stash" (both passes, activations in
/// flight) and the option "recompute" (the forward pass twice; its inputs are in flight, its
/// activations fixed memory). Where the bytes of an edge depend on the width, what is above the
/// least is re-layout at both ends.
PiperProblem piper_from_phaze(const PhazeProblem& problem);

}  // namespace braid
