#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "braid/base/rounding.h"

namespace braid {

/// Notices that a process repeats, and leaps ahead.
///
/// The times at which the parts of a pipeline become free evolve by maxima and sums alone. When all
/// of them have moved by one and the same amount since an earlier block of rounds, they will for
/// ever (a max-plus linear system, Baccelli et al. 1992, §3.7), so whole periods can be added at
/// once. Periods of any length are found by Brent's method: each state is compared with the one
/// kept at the last power of two.
class SteadyState {
 public:
  void restart() { blocks_ = 0, kept_at_ = 0, keep_next_ = 1; }

  /// Call after each block of rounds, with all times that the following ones depend on. Moves
  /// `times` ahead by as many of the `remaining` blocks as whole periods cover and returns that
  /// number; 0 while no period shows. Relative error of a leap: about 1e-12.
  std::int64_t leap(std::span<double> times, std::int64_t remaining) {
    ++blocks_;
    if (kept_at_ > 0) {
      const std::int64_t period = blocks_ - kept_at_;
      const std::int64_t periods = remaining / period;
      if (periods > 0 && moved_together(times)) {
        const double step_s = static_cast<double>(periods) * (times[0] - kept_[0]);
        for (double& time_s : times) time_s += step_s;
        restart();
        return periods * period;
      }
    }
    if (blocks_ == keep_next_) {
      kept_.assign(times.begin(), times.end());
      kept_at_ = blocks_;
      keep_next_ *= 2;
    }
    return 0;
  }

 private:
  bool moved_together(std::span<const double> times) const {
    const double step_s = times[0] - kept_[0];
    for (std::size_t i = 0; i < times.size(); ++i) {
      const double off_s = times[i] - kept_[i] - step_s;
      // Written so that infinite times, whose differences are no numbers, never repeat.
      if (!(std::max(off_s, -off_s) <= kLastDigits * times[i])) return false;
    }
    return true;
  }

  std::vector<double> kept_;
  std::int64_t blocks_ = 0, kept_at_ = 0, keep_next_ = 1;
};

}  // namespace braid
