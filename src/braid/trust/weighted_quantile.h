#pragma once

#include <vector>

#include "braid/trust/interval.h"

namespace braid {

/// The size of an error and what it counts.
struct WeightedError {
  double size = 0, weight = 0;
};

/// The least size below which kIntervalLevel of the weight lies. Sorts. At least one error.
double quantile_of(std::vector<WeightedError>& errors);

/// From exp(-size) to exp(size).
ErrorInterval interval_of(double size);

}  // namespace braid
