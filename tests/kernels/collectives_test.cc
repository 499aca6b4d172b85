#include "braid/kernels/collectives.h"

#include <gtest/gtest.h>

#include "braid/system/system.h"

namespace braid {
namespace {

CollectiveFigures figures() {
  CollectiveFigures f;
  f.floor = 5e-6;
  f.hop = 1e-6;
  f.bandwidth = 1e11;
  f.second_delay = 1e-6;
  f.third_delay = 5e-6;
  f.first_share = 0.1;
  f.second_share = 0.5;
  f.fan = 1;
  return f;
}

TEST(Collectives, SmallOnesTakeTheirStepsLargeOnesTheirBytes) {
  const double small = CollectiveForm::time(figures(), {1}, {8, 8}).time_s;
  EXPECT_NEAR(small, 5e-6 + 7e-6, 1e-9);
  const double large = CollectiveForm::time(figures(), {1}, {8, 8e9}).time_s;
  EXPECT_NEAR(large, 7e9 / 1e11, 1e-4);
}

TEST(Collectives, AllReducingMovesTwiceTheBytes) {
  const Chip chip = load_chip("h100-sxm");
  const auto gather = CollectiveForm::setting(chip, "all_gather/fp16");
  const auto reduce = CollectiveForm::setting(chip, "all_reduce/bf16/graph");
  ASSERT_TRUE(gather && reduce);
  EXPECT_NEAR(CollectiveForm::time(figures(), *reduce, {4, 1e9}).time_s /
                  CollectiveForm::time(figures(), *gather, {4, 1e9}).time_s,
              2, 0.01);
  EXPECT_FALSE(CollectiveForm::setting(chip, "fp16"));
}

TEST(Collectives, SharedLinksHalveWithTwiceTheDevices) {
  CollectiveFigures f = figures();
  f.fan = 2;
  const double two = CollectiveForm::time(f, {1}, {2, 1e9}).time_s;
  const double four = CollectiveForm::time(f, {1}, {4, 1e9}).time_s;
  EXPECT_NEAR(four / two, 2 * (3.0 / 4) / (1.0 / 2), 0.01);
}

}  // namespace
}  // namespace braid
