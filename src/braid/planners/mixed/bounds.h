#pragma once

#include <cstdint>

#include "braid/planners/mixed/problem.h"

namespace braid {

/// By how much a stage of flushed 1F1B, `depth` stages from the end (itself included), lengthens
/// the iteration beyond one way down and up the pipeline; `below_s` is the way behind it, `next_s`
/// the stage behind it with the handovers to it and back. Besides the paths of one_f_one_b_path_s
/// there is one between the two stages: the stage's n-th backward pass comes before its forward
/// pass n + depth, which comes before that of the stage behind, there before backward pass n + 2,
/// and that before the stage's own, so that every two micro-batches take both stages' times and two
/// handovers. And behind the stage's first backward pass come all its others and all forward passes
/// but `depth`, one after another; likewise before its last forward pass.
double stage_excess_s(double forward_s, double backward_s, double below_s, double next_s,
                      std::int64_t depth, std::int64_t micro_batches);

/// The same of those paths alone that pass the last stage with the first micro-batch and with the
/// last, whose forward passes may thus wait at any stage and whose backward passes may leave at
/// any.
double turning_excess_s(double time_s, double below_s, double next_s, std::int64_t depth,
                        std::int64_t micro_batches);

/// A time that no pipeline of the problem can beat; quick.
double quick_bound_s(const MixedProblem& problem);

}  // namespace braid
