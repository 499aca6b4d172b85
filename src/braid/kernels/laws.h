#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace braid {

/// The laws that forms of kernel times share. All arguments are positive.

/// The time of what a library does not do.
inline constexpr double kNotDone = std::numeric_limits<double>::infinity();

inline double fourth_power(double x) { return x * x * x * x; }

/// Nearly the longest of what runs side by side in one loop: `(a⁴ + b⁴ + c⁴)^¼`.
inline double side_by_side(double a, double b, double c = 0) {
  return std::sqrt(std::sqrt(fourth_power(a) + fourth_power(b) + fourth_power(c)));
}

/// `(a^overlap + b^overlap)^(1 / overlap)`: at 1 one after the other, at large values the longer.
inline double overlapped(double a, double b, double overlap) {
  const double more = std::max(a, b);
  return more * std::pow(1 + std::pow(std::min(a, b) / more, overlap), 1 / overlap);
}

/// How much longer bytes take that are read again than in a cache which always has them, as a share
/// of their time from memory: 1 where `cache_bytes` are far fewer than `touched_bytes` in between,
/// `1 / gain` where they are more, `gain` being the cache's bandwidth over that of memory.
inline double missed(double cache_bytes, double touched_bytes, double gain) {
  const double kept = fourth_power(fourth_power(std::min(cache_bytes / touched_bytes, 1e3)));
  return (1 + kept / gain) / (1 + kept);
}

/// Rounds of blocks on all SMs, of which the share `whole` waits for the slowest SM.
inline double rounds(double waves, double whole) {
  return whole * std::ceil(waves) + (1 - whole) * waves;
}

}  // namespace braid
