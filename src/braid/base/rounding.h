#pragma once

namespace braid {

/// Sums of the same numbers in another order, thousands of them, differ by less than 1e-12 of
/// themselves, the share below: a bound times kBelowRounding is not lifted above what it bounds by
/// rounding, a limit times kAboveRounding leaves out nothing that rounding alone lifts above it.
inline constexpr double kRoundingShare = 1e-12;
inline constexpr double kBelowRounding = 1 - kRoundingShare;
inline constexpr double kAboveRounding = 1 + kRoundingShare;

/// Sums of sizes that are kept up to date term by term: stricter than kAboveTolerance, looser than
/// kAboveRounding.
inline constexpr double kRunningSumsShare = 1e-10;
inline constexpr double kAboveRunningSums = 1 + kRunningSumsShare;

/// Limits for sums of floats of 24 bits.
inline constexpr double kAboveFloatRounding = 1 + 1e-6;

/// Times, and sizes of memory, that differ by less than 1e-9 of themselves count as equal where a
/// plan is compared with a bound or a limit: many sums and products lie between the two.
inline constexpr double kToleranceShare = 1e-9;
inline constexpr double kBelowTolerance = 1 - kToleranceShare;
inline constexpr double kAboveTolerance = 1 + kToleranceShare;

/// A gap between a time and its bound that is no reason for another search, nor shown as one.
inline constexpr double kNoGap = 1e-6;

/// Times that differ by a smaller share count as one in searches over target times.
inline constexpr double kSameTime = 1e-11;

/// What one operation rounds away, at most a few times: numbers that differ by a smaller share are
/// the same but for their last digits.
inline constexpr double kLastDigits = 1e-13;

/// Whether a lower bound proves that nothing takes less than `time_s`.
constexpr bool is_proven(double bound_s, double time_s) {
  return bound_s >= time_s * kBelowTolerance;
}

}  // namespace braid
