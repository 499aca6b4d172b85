#include "braid/search/bottleneck_search.h"

#include <vector>

#include "braid/base/infinity.h"
#include "braid/base/rounding.h"

namespace braid {
namespace {

/// Thresholds in [least, below): solutions there have at least this `remainder`.
struct Interval {
  double least = 0;
  double below = 0;
  double remainder = 0;
};

}  // namespace

std::optional<double> best_bottleneck(const ThresholdProblem& problem, double weight) {
  const auto unlimited = problem.solve(kInfinity);
  if (!unlimited.has_value()) return std::nullopt;
  double best = weight * unlimited->bottleneck + unlimited->remainder;
  double best_at = unlimited->bottleneck;

  std::vector<Interval> open = {{problem.least, unlimited->bottleneck, unlimited->remainder}};
  while (!open.empty()) {
    const Interval interval = open.back();
    open.pop_back();
    if (!(interval.least < interval.below)) continue;
    if (!(weight * interval.least + interval.remainder < best * (1 - kLastDigits))) continue;
    double middle = interval.least + (interval.below - interval.least) / 2;
    if (!(middle < interval.below)) middle = interval.least;  // Neighbouring numbers.
    const auto answer = problem.solve(middle);
    // Above the middle; looked at after what lies below, which tends to lower `best` more.
    open.push_back({problem.next_above(middle), interval.below, interval.remainder});
    if (!answer.has_value()) continue;
    const double objective = weight * answer->bottleneck + answer->remainder;
    if (objective < best) {
      best = objective;
      best_at = answer->bottleneck;
    }
    open.push_back({interval.least, answer->bottleneck, answer->remainder});
  }
  return best_at;
}

}  // namespace braid
