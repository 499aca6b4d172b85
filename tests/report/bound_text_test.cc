#include "braid/report/bound_text.h"

#include <cmath>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "braid/base/quantity.h"

namespace braid {
namespace {

TEST(BoundText, IsRoundedDown) {
  EXPECT_EQ(bound_figures(2.6399), "2.639");
  EXPECT_EQ(bound_figures(2.64), "2.640");
  EXPECT_EQ(bound_figures(0.99996), "0.9999");
  EXPECT_EQ(bound_figures(99996), "9.999e+04");
  EXPECT_EQ(bound_figures(0), four_figures(0));
}

TEST(BoundText, IsNeverAboveAndOneDigitBelowAtMost) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> exponent(-9, 9);
  for (int i = 0; i < 10000; ++i) {
    const double value = std::pow(10, exponent(random));
    const double shown = std::stod(bound_figures(value));
    EXPECT_LE(shown, value);
    EXPECT_GE(shown, value * (1 - 1.001e-3));
  }
}

}  // namespace
}  // namespace braid
