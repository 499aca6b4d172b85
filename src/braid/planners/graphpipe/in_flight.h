#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace braid {

/// Stages of a pipeline in topological order that all take micro-batches of one size.
struct RoundTripStage {
  double forward_s = 0, backward_s = 0;  ///< Passes over a micro-batch.
};
struct RoundTripEdge {
  std::int32_t source = 0, target = 0;  ///< source < target; edges ascend by source.
  double out_s = 0, back_s = 0;         ///< Activations and gradients on their way.
};

struct LeastInFlight {
  std::vector<std::int64_t> micro_batches;  ///< [stage]
  double fill_s = 0;  ///< From the first pass over a micro-batch to the end of its last.
};

/// The fewest micro-batches in flight with which all stages can repeat a forward and a backward
/// pass, one after the other, every `period_s`, at least the passes of any stage: from the last
/// stage to the first each as few as those behind it, with theirs, allow, at most `most`, with
/// which all forward passes come first.
///
/// A forward pass over the micro-batch that goes in at 0 starts no earlier than F, a backward pass
/// ends no earlier than B. With l in flight a stage's backward pass comes after the forward passes
/// of l - 1 further micro-batches, B ≥ F + (l-1)·period + forward + backward, and before that of
/// the next, F ≥ B - l·period. These and the edges are difference constraints: there is a schedule
/// if no cycle of them is longer than zero. All new cycles that a stage adds lead through its own
/// last constraint, so with R the longest path from its F to its B, its l is ⌈R/period⌉. Then m
/// micro-batches take at most (m-1)·period + fill. Cost: stages times edges, a few times.
LeastInFlight least_in_flight(std::span<const RoundTripStage> stages,
                              std::span<const RoundTripEdge> edges, double period_s,
                              std::int64_t most);

/// The same of one stage from the R that it sees, which becomes what stages before it see: with
/// those in flight there are at least (l-1)·period + `passes_s`, its forward and backward pass,
/// between F and B.
std::int64_t least_in_flight(double& round_s, double passes_s, double period_s, std::int64_t most);

}  // namespace braid
