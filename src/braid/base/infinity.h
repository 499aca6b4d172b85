#pragma once

#include <cmath>
#include <limits>

namespace braid {

/// A time, a size or a price that nothing reaches.
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Whether a value can be a time, a size or a price that somebody states.
inline bool is_cost(double value) { return std::isfinite(value) && value >= 0; }

}  // namespace braid
