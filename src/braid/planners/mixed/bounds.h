#pragma once

#include "braid/planners/mixed/problem.h"

namespace braid {

/// A time that no pipeline of the problem can beat; quick.
double quick_bound_s(const MixedProblem& problem);

}  // namespace braid
