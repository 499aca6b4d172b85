#include "braid/report/terms.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

TEST(Terms, PartsHaveTheDecimalsOfTheWhole) {
  EXPECT_EQ(part_text(207.8351, 207.8351), "207.84");
  EXPECT_EQ(part_text(0.013214, 207.8351), "0.01");
  EXPECT_EQ(part_text(-0.001, 207.8351), "0.00");
  EXPECT_EQ(part_text(-0.8591, 207.8351), "-0.86");
  EXPECT_EQ(part_text(17.714, 76.6), "17.71");
  EXPECT_EQ(part_text(6.922e-5, 0.14860), "0.00007");
  EXPECT_EQ(part_text(1.5, 1.8), "1.5000");
  EXPECT_EQ(part_text(0, 0), "0.0000");
  EXPECT_EQ(part_text(123456.7, 234567.8), "123457");
}

TEST(Terms, RatesAreWholeWhereTheyAreLarge) {
  EXPECT_EQ(rate_text(36259.7), "36260");
  EXPECT_EQ(rate_text(3.1234), "3.12");
}

}  // namespace
}  // namespace braid
