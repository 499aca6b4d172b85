#pragma once

#include <algorithm>
#include <cstdint>

namespace braid {

/// What the paths of one_f_one_b_path_s (partition.h) through m micro-batches of flushed 1F1B have
/// more than one way down the pipeline and up again, at a stage of `depth` stages from the end,
/// itself included.
struct OneFOneBTurns {
  double steps = 0;            ///< m - 1
  double after = 0;            ///< m - depth, at most 0 when there is no second dive.
  double dives = 0, rest = 0;  ///< m - 1 = dives · depth + rest.

  static OneFOneBTurns of(std::int64_t depth, std::int64_t micro_batches) {
    const std::int64_t steps = micro_batches - 1;
    const std::int64_t dives = steps / depth;
    return {static_cast<double>(steps), static_cast<double>(micro_batches - depth),
            static_cast<double>(dives), static_cast<double>(steps % depth)};
  }

  /// Of the paths that dive below the stage again: once at the end, or all along. `time_s`: its
  /// passes of a micro-batch; `below_s`: those of the stages behind it, with all handovers there.
  double diving_s(double time_s, double below_s) const {
    if (after <= 0) return 0;
    return std::max(after * time_s + below_s, dives * (time_s + below_s) + rest * time_s);
  }

  /// Of all the paths.
  double excess_s(double forward_s, double backward_s, double below_s) const {
    return std::max(steps * std::max(forward_s, backward_s),
                    diving_s(forward_s + backward_s, below_s));
  }
};

/// By how much a stage of flushed 1F1B, `depth` stages from the end (itself included), lengthens
/// the iteration beyond one way down and up the pipeline, of those paths alone that pass the last
/// stage with the first micro-batch and with the last, whose forward passes may thus wait at any
/// stage and whose backward passes may leave at any. `below_s`: the way behind the stage; `next_s`:
/// the stage behind it with the handovers to it and back, 0 where that is not known.
inline double turning_excess_s(double time_s, double below_s, double next_s, std::int64_t depth,
                               std::int64_t micro_batches) {
  if (micro_batches <= depth) return 0;
  const double longest_s = OneFOneBTurns::of(depth, micro_batches).diving_s(time_s, below_s);
  if (depth < 2) return longest_s;
  const std::int64_t pairs = (micro_batches - depth - 1) / 2;
  const std::int64_t alone = micro_batches - depth - 2 * pairs;
  return std::max(longest_s, static_cast<double>(pairs) * (time_s + next_s) +
                                 static_cast<double>(alone) * time_s + below_s);
}

/// The same of a path that stays on the stage: before its last forward pass come all its others and
/// all backward passes but `depth`, one after another, and behind it one way down and up
/// (`repeated_s`: a forward pass). Or the other way around in time, with what comes behind its
/// first backward pass; that path leaves out the last micro-batch's passes of the stages behind.
inline double staying_excess_s(double repeated_s, double other_s, std::int64_t depth,
                               std::int64_t micro_batches) {
  const auto others = static_cast<double>(micro_batches - 1);
  const auto turns = static_cast<double>(std::max<std::int64_t>(0, micro_batches - depth));
  return others * repeated_s + turns * other_s;
}

/// The same of all paths. Besides those of one_f_one_b_path_s and those that stay there is one
/// between the two stages: the stage's n-th backward pass comes before its forward pass n + depth,
/// which comes before that of the stage behind, there before backward pass n + 2, and that before
/// the stage's own, so that every two micro-batches take both stages' times and two handovers.
inline double stage_excess_s(double forward_s, double backward_s, double below_s, double next_s,
                             std::int64_t depth, std::int64_t micro_batches) {
  return std::max(staying_excess_s(std::max(forward_s, backward_s), std::min(forward_s, backward_s),
                                   depth, micro_batches),
                  turning_excess_s(forward_s + backward_s, below_s, next_s, depth, micro_batches));
}

}  // namespace braid
