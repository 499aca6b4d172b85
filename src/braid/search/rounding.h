#pragma once

namespace braid {

/// Bounds are sums in another order than what they bound: times this, rounding cannot lift them
/// above it.
inline constexpr double kBelowRounding = 1 - 1e-12;

/// Times that differ by a smaller share count as one in searches over target times.
inline constexpr double kSameTime = 1e-11;

}  // namespace braid
