#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "braid/base/infinity.h"

namespace braid {

/// The k-th least value, counted from 1; infinity when there are fewer. Linear on average.
inline double kth_least(std::vector<double> values, std::size_t k) {
  if (k > values.size()) return kInfinity;
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(k - 1);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

}  // namespace braid
