#include "braid/planners/mixed/reach.h"

#include <algorithm>

namespace braid {

MixedReach reach_of(const MixedStageTimes& times, const MixedStageTimes::Time& stage,
                    std::int32_t left, const MixedReach& behind, double excess_s,
                    double turning_s) {
  const double forward_s = times.least_forward_before_s(left);
  const double backward_s = times.least_backward_before_s(left);
  MixedReach reach;
  reach.below_s = behind.below_s + stage.time_s();
  reach.late_s = std::max({forward_s, stage.head_s, behind.late_s - stage.forward_s});
  reach.rise_s = std::max({backward_s, stage.tail_s, behind.rise_s - stage.backward_s});
  reach.peak_s = std::max(behind.peak_s, turning_s);
  const double own_s =
      std::max(forward_s, stage.head_s) + excess_s + std::max(backward_s, stage.tail_s);
  reach.end_s = reach.below_s + std::max(own_s, reach.late_s + reach.peak_s + reach.rise_s);
  return reach;
}

}  // namespace braid
