#pragma once

#include "braid/planners/phaze/table.h"

namespace braid {

/// phaze_candidates() for a graph whose layers can run in one order only (cut n lies behind the
/// first n layers), so that no stage has branches. Extends stages layer by layer: O(layers² +
/// layers · edges).
PhazeCandidates phaze_linear_candidates(const PhazeProblem& problem, const PhazeWidth& width);

}  // namespace braid
