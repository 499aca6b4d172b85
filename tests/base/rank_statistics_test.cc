#include "braid/base/rank_statistics.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace braid {
namespace {

TEST(RankStatistics, CorrelationFollowsSpearmansFormula) {
  // 1 - 6·Σd²/(n·(n² - 1)) without ties: d = 1, 1, 2, 2, 0.
  const std::vector<double> a = {1, 2, 3, 4, 5}, b = {20, 10, 50, 30, 60};
  const std::vector<double> c = {2, 1, 5, 2.5, 9};
  EXPECT_NEAR(rank_correlation(a, b), 1 - 6.0 * (1 + 1 + 1 + 1 + 0) / (5 * 24), 1e-12);
  EXPECT_NEAR(rank_correlation(b, c), 1, 1e-12);
  EXPECT_NEAR(rank_correlation(a, std::vector<double>{5, 4, 3, 2, 1}), -1, 1e-12);
  EXPECT_EQ(rank_correlation(a, std::vector<double>(5, 3.0)), 0);
  // Ties share their mean rank: ranks 0.5, 0.5, 2 against 0, 1, 2.
  EXPECT_NEAR(rank_correlation(std::vector<double>{1, 1, 2}, std::vector<double>{1, 2, 3}),
              1.5 / std::sqrt(1.5 * 2), 1e-12);
}

TEST(RankStatistics, RegretIsWhatTheTopChoicesLose) {
  const double failed = std::numeric_limits<double>::infinity();
  const std::vector<double> predicted = {3, 1, 2, 4}, actual = {10, failed, 12, 11};
  EXPECT_EQ(top_regret(predicted, actual, 1), failed);
  EXPECT_NEAR(top_regret(predicted, actual, 2), 0.2, 1e-12);
  EXPECT_NEAR(top_regret(predicted, actual, 3), 0, 1e-12);
  EXPECT_NEAR(top_regret(predicted, actual, 99), 0, 1e-12);
}

}  // namespace
}  // namespace braid
