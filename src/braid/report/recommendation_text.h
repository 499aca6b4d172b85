#pragma once

#include <string>

#include "braid/plan/outcome.h"

namespace braid {

/// Where another plan than the fastest is recommended: why, and what the fastest gains. Where the
/// plan uses host memory: what the fastest without takes, or which option plans without. Lines, or
/// nothing.
std::string recommendation_text(const Outcome& outcome);

/// "optimizer state in host memory": what any stage of a plan keeps there; empty: nothing.
std::string offload_text(const Plan& plan);

/// How much less the fastest plan takes than the first one, as a share of that one's time.
double gain_of_fastest(const Outcome& outcome);

}  // namespace braid
