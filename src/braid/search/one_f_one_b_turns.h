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

}  // namespace braid
