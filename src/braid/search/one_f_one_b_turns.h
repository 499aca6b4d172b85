#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>

namespace braid {

/// By how much one stage of flushed 1F1B lengthens the iteration beyond one way down the pipeline
/// and up again: the longest of some paths through the schedule, none of which is longer than the
/// simulated time. Of m micro-batches, at a stage `depth` stages from the end (itself included):
///
///     waits   (m - 1)·max(f, b)
///     stays   (m - 1)·f + max(0, m - depth)·b, or with f and b exchanged
///     dives   (m - depth)·t + W, and q·(t + W) + r·t with m - 1 = q·depth + r     where m > depth
///     pairs   n·(t + N) + (m - depth - 2n)·t + W with n = ⌊(m - depth - 1)/2⌋     where m > depth
///
/// with f and b for the stage's passes of a micro-batch and t for both; W for the way behind it,
/// down and up with all handovers; N for the passes of the stage right behind it with the handovers
/// to it and back (0: not known). A search counts as many of them as it has a use for:
///
///     chain_excess_s      waits, dives     what splits of chains are best by (partition.h)
///     turning_excess_s    dives, pairs     paths that pass the last stage with the first and with
///                                          the last micro-batch: planner braid on mixed clusters
///     rising_excess_s     stays (f), dives paths that end with the last micro-batch's way up,
///     which
///                                          synchronisation follows: phaze
///     excess_s            all              planner braid on mixed clusters
///
/// and two have the least of these over stages that are not known yet. So
///
///     least_chain_excess_s ≤ chain_excess_s ≤ excess_s ≤ simulated time - one way
///     rising_excess_s ≤ excess_s,  turning_excess_s ≤ excess_s,  least_excess_s ≤ excess_s
struct OneFOneBTurns {
  double steps = 0;            ///< m - 1
  double after = 0;            ///< m - depth; at most 0: no second dive.
  double dives = 0, rest = 0;  ///< m - 1 = dives · depth + rest
  double pairs = 0;            ///< n; 0 at the last stage.

  static OneFOneBTurns of(std::int64_t depth, std::int64_t micro_batches) {
    assert(depth > 0);
    const std::int64_t steps = micro_batches - 1;
    const std::int64_t after = micro_batches - depth;
    const std::int64_t dives = steps / depth;
    const std::int64_t pairs = depth > 1 && after > 0 ? (after - 1) / 2 : 0;
    return {static_cast<double>(steps), static_cast<double>(after), static_cast<double>(dives),
            static_cast<double>(steps % depth), static_cast<double>(pairs)};
  }

  /// `time_s`: the stage's passes of a micro-batch; `below_s`: the way behind it. Once below the
  /// stage at the end, or all along.
  double diving_s(double time_s, double below_s) const {
    if (after <= 0) return 0;
    return std::max(after * time_s + below_s, dives * (time_s + below_s) + rest * time_s);
  }

  /// Between the stage and the one behind it: the stage's n-th backward pass comes before its
  /// forward pass n + depth, which comes before that of the stage behind, there before backward
  /// pass n + 2, and that before the stage's own, so that every two micro-batches take both stages'
  /// times and two handovers.
  double pairing_s(double time_s, double below_s, double next_s) const {
    if (after <= 0) return 0;
    return pairs * (time_s + next_s) + (after - 2 * pairs) * time_s + below_s;
  }

  /// On the stage: before its last forward pass come all its others and all backward passes but
  /// `depth`, one after another, and behind it one way down and up (`repeated_s`: a forward pass).
  /// Or the other way around in time, with what comes behind its first backward pass; that path
  /// leaves out the last micro-batch's passes of the stages behind.
  double staying_s(double repeated_s, double other_s) const {
    return steps * repeated_s + std::max(0.0, after) * other_s;
  }

  /// Falls, or stays, as layers leave the stage at either end, to the stages beside it.
  double chain_excess_s(double forward_s, double backward_s, double below_s) const {
    return std::max(steps * std::max(forward_s, backward_s),
                    diving_s(forward_s + backward_s, below_s));
  }

  double turning_excess_s(double time_s, double below_s, double next_s) const {
    return std::max(diving_s(time_s, below_s), pairing_s(time_s, below_s, next_s));
  }

  double rising_excess_s(double forward_s, double backward_s, double below_s) const {
    return std::max(staying_s(forward_s, backward_s), diving_s(forward_s + backward_s, below_s));
  }

  double excess_s(double forward_s, double backward_s, double below_s, double next_s) const {
    return std::max(staying_s(std::max(forward_s, backward_s), std::min(forward_s, backward_s)),
                    turning_excess_s(forward_s + backward_s, below_s, next_s));
  }

  /// What some stage's chain_excess_s is at least in a pipeline of so many stages that take `all_s`
  /// at least together, one of them `slowest_s`; `backward_share`: the least that backward passes
  /// have of any stage's time.
  static double least_chain_excess_s(std::int64_t stages, std::int64_t micro_batches, double all_s,
                                     double slowest_s, double backward_share) {
    const OneFOneBTurns first = of(stages, micro_batches);
    // The stages before the slowest one are as many as it has more turns than the first stage, and
    // none takes longer than such a turn.
    const double longest_s = std::max(
        first.dives * all_s, first.after > 0 ? all_s + (first.after - 1) * slowest_s : 0.0);
    return std::max(longest_s, first.steps * slowest_s * backward_share);
  }

  /// What the excess_s is at least of a stage that takes `time_s` at least, at most `deepest`
  /// stages from the end (m at most), with a way of `below_s` at least behind it; `backward_share`
  /// as above.
  static double least_excess_s(std::int64_t deepest, std::int64_t micro_batches, double time_s,
                               double backward_share, double below_s) {
    const auto steps = static_cast<double>(micro_batches - 1);
    const auto after = static_cast<double>(micro_batches - deepest);
    const double staying_s = time_s * (after + (steps - after) * backward_share);
    return std::max(staying_s, after * time_s + (after > 0 ? below_s : 0));
  }
};

}  // namespace braid
