#include "braid/base/least_threshold.h"

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

TEST(LeastThreshold, LiesInTheRangeThatIsLeft) {
  const auto next = [](const ThresholdRange& range) -> std::optional<double> {
    if (range.is_within(1e-6)) return std::nullopt;
    return range.middle();
  };
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
