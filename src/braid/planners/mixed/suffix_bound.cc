#include "braid/planners/mixed/suffix_bound.h"

#include <algorithm>

namespace braid {

MixedSuffixBound suffix_bound_of(const MixedStageTimes& times, const MixedStageTimes::Time& stage,
                                 std::int32_t left, const MixedSuffixBound& behind, double excess_s,
                                 double turning_s) {
  const double forward_s = times.least_forward_before_s(left);
  const double backward_s = times.least_backward_before_s(left);
  MixedSuffixBound bound;
  bound.below_s = behind.below_s + stage.time_s();
  bound.late_s = std::max({forward_s, stage.head_s, behind.late_s - stage.forward_s});
  bound.rise_s = std::max({backward_s, stage.tail_s, behind.rise_s - stage.backward_s});
  bound.peak_s = std::max(behind.peak_s, turning_s);
  const double own_s =
      std::max(forward_s, stage.head_s) + excess_s + std::max(backward_s, stage.tail_s);
  bound.end_s = bound.below_s + std::max(own_s, bound.late_s + bound.peak_s + bound.rise_s);
  return bound;
}

}  // namespace braid
