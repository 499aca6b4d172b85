#include "braid/machine/measure_links.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

TEST(MeasureLinks, TimesMessagesOfEachSize) {
  const std::vector<MessageTime> times =
      measure_links({.processes = 3, .largest_bytes = 1 << 18, .rounds = 5, .limit_s = 60});
  ASSERT_EQ(times.size(), 9U);
  std::int64_t bytes = 4;
  for (const MessageTime& each : times) {
    EXPECT_EQ(each.bytes, bytes);
    EXPECT_GT(each.time_s, 0);
    EXPECT_LT(each.time_s, 10);
    bytes *= 4;
  }
}

TEST(FitLinks, FindsLatencyAndBandwidth) {
  std::vector<MessageTime> times;
  for (std::int64_t bytes = 4; bytes < 1 << 25; bytes *= 4) {
    times.push_back({bytes, 17e-6 + static_cast<double>(bytes) / 3e9});
  }
  const LinkFigures link = fit_links(times);
  EXPECT_NEAR(link.latency_s, 17e-6, 1e-9);
  EXPECT_NEAR(link.bytes_per_s, 3e9, 1e6);
  EXPECT_LT(link.mean_error, 1e-4);
  times.back().time_s *= 2;
  EXPECT_GT(fit_links(times).mean_error, 0.01);
}

}  // namespace
}  // namespace braid
