#include "braid/base/quantile.h"

#include <array>

#include <gtest/gtest.h>

namespace braid {
namespace {

TEST(Quantile, LiesBetweenNeighboursInProportion) {
  const std::array sorted{1.0, 2.0, 4.0};
  EXPECT_EQ(quantile(sorted, 0), 1);
  EXPECT_EQ(quantile(sorted, 0.25), 1.5);
  EXPECT_EQ(quantile(sorted, 0.75), 3);
  EXPECT_EQ(quantile(sorted, 1), 4);
  EXPECT_EQ(quantile(std::array{7.0}, 0.9), 7);
}

TEST(Quantile, MedianIsTheMiddleOrTheMeanOfTwo) {
  EXPECT_EQ(median({5, 1, 3}), 3);
  EXPECT_EQ(median({5, 1, 3, 4}), 3.5);
}

}  // namespace
}  // namespace braid
