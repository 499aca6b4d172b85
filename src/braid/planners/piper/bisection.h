#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "braid/base/infinity.h"
#include "braid/base/least_threshold.h"
#include "braid/base/rounding.h"
#include "braid/planners/piper/search.h"

namespace braid {

/// Steps up from a lower bound, as shares of it.
struct RisingSteps {
  double step = 0, factor = 0, most = 0;  ///< The next one; each is so many times the last.

  /// nullopt: they have become too large, or there is no bound to go by.
  std::optional<double> next_above(double bound) {
    if (!(step < most && bound > 0)) return std::nullopt;
    const double limit = bound * (1 + step);
    step *= factor;
    return limit;
  }
};

/// Narrows down the least threshold that stages can keep: each solution found lowers the upper end
/// to its own time, each threshold that none keeps raises the lower end. `Search`:
///   std::optional<PiperSolution> keep(double limit);  // Stages, superstages and their time.
///   bool exhausted() const;                           // No work is left.
///   bool proven() const;                              // Else a "no" may be wrong.
///   std::int64_t work() const;
template <typename Search>
class PiperBisection {
 public:
  /// No solution takes less than `low`. `solution`: what is known from elsewhere, if anything;
  /// receives the result. All have to outlive this.
  PiperBisection(Search& search, double low, const Progress& progress, PiperSolution& solution)
      : search_(search), progress_(progress), solution_(solution), low_(low) {
    if (!solution.stages.empty()) high_ = solution.time;
  }

  double low() const { return low_; }
  double high() const { return high_; }  ///< Infinity: no solution is known.
  bool has_solution() const { return high_ < kInfinity; }
  /// Should there be a search for something faster, and work left for it?
  bool is_open() const { return low_ < high_ * (1 - kSameTime) && !search_.exhausted(); }
  /// Are the ends so close that the upper one is probably the optimum?
  bool is_close() const { return low_ <= 0 || low_ > high_ * (1 - kNearThreshold); }

  void attempt(double limit) {
    std::optional<PiperSolution> found = search_.keep(limit);
    if (found) return take(std::move(*found), limit);
    if (!search_.exhausted()) exclude(limit);
    show();
  }
  void attempt_below_high() { attempt(high_ * (1 - kSameTime)); }

  void exclude(double limit) { low_ = std::max(low_, limit); }
  /// Keeps a solution within the limit if it is the fastest so far.
  void take(PiperSolution found, double limit) {
    if (found.time < high_) {
      high_ = found.time;
      solution_.stages = std::move(found.stages);
      solution_.superstages = std::move(found.superstages);
    } else {
      exclude(limit);  // Rounding: what was found is what is known.
    }
    show();
  }

  /// From the lower end up by such steps until something is found; at last without a limit.
  void rise(RisingSteps steps) {
    while (!has_solution()) {
      const std::optional<double> limit = steps.next_above(low_);
      if (limit && search_.exhausted()) return;
      attempt(limit.value_or(kInfinity));
      if (!limit) return;
    }
  }

  /// Closes the gap by halves of its logarithm. `halve_next`: after a solution just below the upper
  /// end even if the ends are close.
  void halve(bool halve_next) {
    while (has_solution() && is_open()) {
      const double before = high_;
      if (is_close()) attempt_below_high();
      const bool halves = low_ <= high_ * (1 - kNearThreshold) || (halve_next && high_ < before);
      if (halves && low_ > 0 && low_ < high_ * (1 - kSameTime)) attempt(std::sqrt(low_ * high_));
    }
  }

  /// Fills in the solution's status, time, bound and work.
  void finish() {
    const bool complete = search_.proven() && !search_.exhausted();
    solution_.work += search_.work();
    if (!has_solution()) {
      solution_.status = complete ? Status::infeasible : Status::budget_exhausted;
      return;
    }
    solution_.time = high_;
    solution_.status = complete ? Status::optimal : Status::feasible;
    solution_.bound = complete ? high_ : std::min(low_, high_);
  }

 private:
  void show() const {
    if (progress_) progress_(high_, std::min(low_, high_), solution_.work + search_.work());
  }

  Search& search_;
  const Progress& progress_;
  PiperSolution& solution_;
  double low_, high_ = kInfinity;
};

}  // namespace braid
