#include "braid/trust/weighted_quantile.h"

#include <algorithm>
#include <cmath>

namespace braid {

double quantile_of(std::vector<WeightedError>& errors) {
  std::sort(errors.begin(), errors.end(),
            [](const WeightedError& a, const WeightedError& b) { return a.size < b.size; });
  double whole = 0;
  for (const WeightedError& error : errors) whole += error.weight;
  double below = 0;
  for (const WeightedError& error : errors) {
    below += error.weight;
    if (below >= kIntervalLevel * whole) return error.size;
  }
  return errors.back().size;
}

ErrorInterval interval_of(double size) { return {std::exp(-size), std::exp(size)}; }

}  // namespace braid
