#pragma once

#include <cstdint>

#include "braid/planners/mixed/stage_times.h"

namespace braid {

/// What a stage and those behind it are known to take, seen from it.
struct MixedSuffixBound {
  double below_s = 0;  ///< One way down and up, the stage included.
  double late_s = 0;   ///< As MixedSuffix has them.
  double rise_s = 0;
  double peak_s = 0;
  double end_s = 0;  ///< No pipeline that goes on like this takes less.
};

/// `behind` is that of the stages behind, less a handover each way; its end does not count. The
/// stage's first layer is `left`; `excess_s` and `turning_s` are its excess_s and
/// turning_excess_s (OneFOneBTurns).
MixedSuffixBound suffix_bound_of(const MixedStageTimes& times, const MixedStageTimes::Time& stage,
                                 std::int32_t left, const MixedSuffixBound& behind, double excess_s,
                                 double turning_s);

}  // namespace braid
