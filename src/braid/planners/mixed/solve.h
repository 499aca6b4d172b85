#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "braid/planners/mixed/problem.h"

namespace braid {

struct MixedSolution {
  std::vector<MixedPipeline> pipelines;  ///< Met on the way, each once.
  /// No pipeline takes less; at most the cutoff, but infinite when none fits however long it takes.
  double bound_s = 0;
  bool memory_bound = false;
  bool spent = false;  ///< Given up for the number of steps.
  std::int64_t steps = 0;
};

/// Pipelines of least bound_s() and what none can beat, unless that is the cutoff or more. Ranges
/// of excesses are halved until they cannot hold a better one. `visit` is shown each pipeline and
/// returns the cutoff from then on. `most_steps` limits the work; what is left then shows in the
/// bound.
MixedSolution solve_mixed(const MixedProblem& problem, double cutoff_s, std::int64_t most_steps,
                          const std::function<double(const MixedPipeline&)>& visit);

}  // namespace braid
