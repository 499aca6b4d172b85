#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace braid {

/// Divisors of `number` up to `most`, ascending.
std::vector<int> divisors(std::int64_t number, std::int64_t most);

/// The values that a degree of a plan may take: any, one, those of a list, none above a limit, or
/// those of a list that are not above a limit.
///
///     Degrees tp = 8;                      // --tp 8
///     tp = Degrees({1, 2, 4}, 2);          // --tp 1,2,4 --max-tp 2
///     tp.allows(4);                        // false
class Degrees {
 public:
  static constexpr int kNoLimit = std::numeric_limits<int>::max();

  Degrees() = default;                      ///< Any.
  Degrees(int value) : values_({value}) {}  // NOLINT(google-explicit-constructor): one is a list
  /// Those of `values`, in any order; empty: all; of these none above `most`.
  explicit Degrees(std::vector<int> values, int most = kNoLimit);

  bool is_any() const { return values_.empty() && most_ == kNoLimit; }
  bool allows(std::int64_t value) const;
  /// The one value that it may take, if there is but one.
  std::optional<int> single() const;
  /// The least allowed value from `least` on.
  std::optional<int> at_least(int least) const;
  /// The least of all; 1 where all are above the limit.
  int least() const { return at_least(1).value_or(1); }
  /// The largest allowed value up to `most`; 0: none.
  int at_most(std::int64_t most) const;
  /// Those of `candidates` that are allowed.
  std::vector<int> among(std::vector<int> candidates) const;
  /// The allowed values in [first, last] as runs without a gap, ascending.
  std::vector<std::pair<int, int>> runs(int first, int last) const;

  /// What was said: the list, ascending (empty: none), and the limit.
  const std::vector<int>& list() const { return values_; }
  int limit() const { return most_; }
  /// "8", "1, 2, 4", "at most 8", "1, 2, 4, at most 2"; empty: any.
  std::string text() const;

  friend bool operator==(const Degrees&, const Degrees&) = default;

 private:
  std::vector<int> values_;  ///< Ascending, each once; empty: any.
  int most_ = kNoLimit;
};

}  // namespace braid
