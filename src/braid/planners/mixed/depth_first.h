#pragma once

#include <cstdint>
#include <functional>

#include "braid/planners/mixed/problem.h"

namespace braid {

struct MixedDepthFirstLimits {
  std::int64_t steps = 0;  ///< Stages tried.
  std::int64_t shown = 0;  ///< Pipelines shown.
};

struct MixedDepthFirstResult {
  /// No pipeline that was not shown takes less; at most the cutoff.
  double bound_s = 0;
  std::int64_t steps = 0, shown = 0;
};

/// Pipelines of a problem one by one, depth first from the last stage, leaving out whatever is
/// bound to take the cutoff or longer. `visit` is shown each of the others and returns the cutoff
/// from then on; some are collected, and those of less bound shown first. The bounds are those of
/// MixedPasses; where layers do not follow one another (MixedProblem::readers), those that hold for
/// any graph of stages: with `t` the passes of a stage for a micro-batch, `W` the longest way
/// behind it and `d` its depth, gathering, `m·t` or `t + W` and its turning_excess_s, and its
/// synchronisation, and `m` times what the devices left need for the layers left.
MixedDepthFirstResult search_depth_first(const MixedProblem& problem, double cutoff_s,
                                         const MixedDepthFirstLimits& limits,
                                         const std::function<double(const MixedPipeline&)>& visit);

}  // namespace braid
