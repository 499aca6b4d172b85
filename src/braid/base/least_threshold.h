#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "braid/base/infinity.h"

namespace braid {

/// The first of the whole numbers from `first` on, below `last`, for which `holds`, which holds for
/// all behind one for which it does; `last` if there is none. Logarithmic in their number.
template <typename Number, typename Holds>
Number first_where(Number first, Number last, const Holds& holds) {
  while (first < last) {
    const Number middle = first + (last - first) / 2;
    if (holds(middle)) {
      last = middle;
    } else {
      first = middle + 1;
    }
  }
  return first;
}

/// The same where it is near the first: in twice as many steps as the distance has binary digits.
template <typename Number, typename Holds>
Number first_where_near(Number first, Number last, const Holds& holds) {
  for (Number step = 1; first < last; step *= 2) {
    const Number tried = std::min(first + step - 1, last - 1);
    if (holds(tried)) return first_where(first, tried, holds);
    first = tried + 1;
  }
  return first;
}

/// Ends of a range that differ by less, as a share of the upper one, count as one in searches for a
/// plan: another way is taken from there on, or the search ends.
inline constexpr double kNearThreshold = 1e-3;
/// The same where every byte that is missing is told.
inline constexpr double kExactThreshold = 1e-6;

/// Where searches for missing memory end: less than this is none missing, and nobody could give a
/// device more.
inline constexpr double kByte = 1;
inline constexpr double kEndlessBytes = 1e18;

/// Between what is too little and what is enough.
struct ThresholdRange {
  static constexpr double kMagnitude = 16;

  double low = 0;
  double high = 0;

  double middle() const { return low + (high - low) / 2; }
  /// Whether the least threshold is known to such a share of it.
  bool is_within(double share) const { return !(high - low > share * high); }
  /// What to try where it may be anywhere in between; nullopt when it is known to such a share.
  std::optional<double> next_by_half(double share) const {
    return is_within(share) ? std::nullopt : std::optional(middle());
  }
  /// What to try where the least threshold may be far below `high`: by magnitudes until something
  /// is too little, then by halves; nullopt when it is known to such a share, or is `negligible`.
  std::optional<double> next_by_magnitude(double share, double negligible) const {
    if (is_within(share) || !(high > negligible)) return std::nullopt;
    if (!(low > 0)) return high / kMagnitude;
    return high < 4 * low ? (low + high) / 2 : std::sqrt(low * high);
  }
};

/// Narrows down the least threshold for which something can be done. `next(range)`: the threshold
/// to try, inside the range; nullopt ends the search. `attempt(threshold)`: nullopt where it cannot
/// be done; else with how little it can, mostly the threshold itself.
template <typename Next, typename Attempt>
ThresholdRange least_threshold(ThresholdRange range, const Next& next, const Attempt& attempt) {
  while (const std::optional<double> threshold = next(std::as_const(range))) {
    if (const std::optional<double> enough = attempt(*threshold)) {
      range.high = *enough;
    } else {
      range.low = *threshold;
    }
  }
  return range;
}

/// Something that there is within range.high, or `factor` times as much, and so on; range.low
/// becomes the last within which there is nothing. nullopt: not within anything that a number can
/// say.
template <typename Within>
auto first_within(ThresholdRange& range, double factor, const Within& within) {
  auto found = within(range.high);
  while (!found) {
    range.low = range.high;
    range.high *= factor;
    if (!(range.high < kInfinity)) break;
    found = within(range.high);
  }
  return found;
}

/// What needs little more than the least memory. `known` needs range.high at most; `next` as for
/// least_threshold(); `within(bytes)`: an optional other one that needs no more; `bytes_of(found)`:
/// what it needs.
template <typename Found, typename Next, typename Within, typename BytesOf>
Found least_memory(ThresholdRange range, Found known, const Next& next, const Within& within,
                   const BytesOf& bytes_of) {
  least_threshold(range, next, [&](double bytes) -> std::optional<double> {
    std::optional<Found> found = within(bytes);
    if (!found) return std::nullopt;
    known = std::move(*found);
    return std::min(bytes, bytes_of(known));
  });
  return known;
}

}  // namespace braid
