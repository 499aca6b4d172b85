#include "braid/base/least_threshold.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

namespace braid {
namespace {

TEST(FirstWhere, IsTheFirstThatHolds) {
  for (int last = 0; last < 20; ++last) {
    for (int first = 0; first <= last; ++first) {
      for (int from = first; from <= last; ++from) {
        const auto holds = [&](int i) {
          EXPECT_TRUE(first <= i && i < last);
          return i >= from;
        };
        EXPECT_EQ(first_where(first, last, holds), from);
      }
    }
  }
  EXPECT_EQ(first_where(5, 3, [](int) { return true; }), 5);
}

TEST(FirstWhere, IsTheSameFromNear) {
  for (int first = 0; first < 20; ++first) {
    for (int last = first; last < 40; ++last) {
      for (int from = first; from <= last; ++from) {
        int asked = 0;
        const auto holds = [&](int number) {
          EXPECT_GE(number, first);
          EXPECT_LT(number, last);
          ++asked;
          return number >= from;
        };
        EXPECT_EQ(first_where_near(first, last, holds), from);
        EXPECT_LE(asked, 1 + 2 * std::bit_width(static_cast<unsigned>(from - first + 1)));
      }
    }
  }
  EXPECT_EQ(first_where_near(5, 3, [](int) { return true; }), 5);
}

TEST(FirstWithin, GrowsUntilThereIsSomething) {
  const auto within = [](double bytes) {
    return bytes >= 10 ? std::optional<double>(bytes) : std::nullopt;
  };
  ThresholdRange range{0, 1};
  EXPECT_EQ(first_within(range, 4, within), 16);
  EXPECT_EQ(range.low, 4);
  EXPECT_EQ(range.high, 16);
  ThresholdRange endless{0, 1};
  EXPECT_FALSE(first_within(endless, 4, [](double) { return std::optional<double>(); }));
}

TEST(LeastThreshold, ComesFromFarAwayByMagnitudes) {
  for (const double least : {0.0, 3.0, 2e5, 7e17}) {
    int steps = 0;
    const auto next = [](const ThresholdRange& range) { return range.next_by_magnitude(1e-3, 1); };
    const auto attempt = [&](double threshold) -> std::optional<double> {
      ++steps;
      return threshold >= least ? std::optional(threshold) : std::nullopt;
    };
    const ThresholdRange range = least_threshold({0, 1e18}, next, attempt);
    EXPECT_GE(range.high, least);
    EXPECT_LE(range.high, std::max(1.0, least * 1.002));
    EXPECT_LE(steps, 35);
  }
}

TEST(LeastThreshold, LiesInTheRangeThatIsLeft) {
  const auto next = [](const ThresholdRange& range) { return range.next_by_half(1e-6); };
  std::vector<double> tried;
  const auto attempt = [&](double threshold) -> std::optional<double> {
    tried.push_back(threshold);
    if (threshold < 10) return std::nullopt;
    return threshold;
  };
  const ThresholdRange range = least_threshold({0, 64}, next, attempt);
  EXPECT_LT(range.low, 10);
  EXPECT_GE(range.high, 10);
  EXPECT_LE(range.high - range.low, 1e-6 * range.high);
  EXPECT_EQ(tried.front(), 32);
  // What an attempt takes less ends the search sooner.
  const std::size_t steps = tried.size();
  tried.clear();
  const auto exact = [&](double threshold) -> std::optional<double> {
    if (!attempt(threshold)) return std::nullopt;
    return 10;
  };
  EXPECT_EQ(least_threshold({0, 64}, next, exact).high, 10);
  EXPECT_LT(tried.size(), steps);
  EXPECT_EQ(tried[1], 5);
}

TEST(LeastMemory, IsThatOfTheLastThatFits) {
  const auto next = [](const ThresholdRange& range) -> std::optional<double> {
    if (range.is_within(1e-3)) return std::nullopt;
    return range.middle();
  };
  // Needs whole tens, 30 at least.
  const auto within = [](double bytes) -> std::optional<std::int64_t> {
    if (bytes < 30) return std::nullopt;
    return static_cast<std::int64_t>(bytes) / 10;
  };
  const auto bytes_of = [](std::int64_t tens) { return static_cast<double>(10 * tens); };
  EXPECT_EQ(least_memory({0, 100}, std::int64_t{10}, next, within, bytes_of), 3);
  EXPECT_EQ(least_memory({0, 20}, std::int64_t{2}, next, within, bytes_of), 2);
}

}  // namespace
}  // namespace braid
