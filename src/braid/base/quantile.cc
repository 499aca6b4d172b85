#include "braid/base/quantile.h"

#include <algorithm>
#include <cassert>
#include <cstddef>

namespace braid {

double quantile(std::span<const double> sorted, double share) {
  assert(!sorted.empty());
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return quantile(values, 0.5);
}

}  // namespace braid
