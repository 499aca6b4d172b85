#include "braid/kernels/experts.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

TEST(ExpertLoad, BalancedRowsAreDealtOutEvenly) {
  const ExpertLoad load = expert_load({512, 4096, 1024, 8, 64, 1, 4});
  EXPECT_DOUBLE_EQ(load.rows, 512 * 8 / 4);
  EXPECT_DOUBLE_EQ(load.active, 16);
  // 64 rows an expert: 8, 4, 2, 1 tiles, and one that is half full.
  EXPECT_DOUBLE_EQ(load.tiles[0], 16 * 8);
  EXPECT_DOUBLE_EQ(load.tiles[3], 16);
  EXPECT_DOUBLE_EQ(load.tiles[4], 16);
}

TEST(ExpertLoad, FewRowsReachFewExperts) {
  const ExpertLoad load = expert_load({1, 4096, 1024, 8, 64, 1, 1});
  EXPECT_DOUBLE_EQ(load.active, 8);
  EXPECT_DOUBLE_EQ(load.tiles[4], 8);
}

TEST(ExpertLoad, SkewGivesTheBusiestRankMoreThanItsShare) {
  const ExpertShape even{4096, 4096, 1024, 8, 128, 1, 8};
  ExpertShape skewed = even;
  skewed.skew = 1.2;
  EXPECT_GT(expert_load(skewed).rows, 1.2 * expert_load(even).rows);
  skewed.ep = 1;  // One rank has all rows.
  EXPECT_LE(expert_load(skewed).rows, 4096 * 8 * (1 + 1e-12));
  EXPECT_GT(expert_load(skewed).rows, 0.7 * 4096 * 8);
}

TEST(ExpertLoad, AnExponentOfOneIsLikeOneNearIt) {
  ExpertShape one{4096, 4096, 1024, 8, 128, 1, 8};
  one.skew = 1;
  ExpertShape near = one;
  near.skew = 1.0001;
  EXPECT_NEAR(expert_load(one).rows / expert_load(near).rows, 1, 1e-3);
}

TEST(Experts, WeightsOfActiveExpertsComeFromMemory) {
  ExpertFigures f;
  f.peak = 0.5;
  f.feed = 1e16;
  f.step = 1e-14;
  f.epilogue = f.block = 1e-12;
  f.whole_waves = 0.05;
  f.memory = 0.5;
  f.l2_gain = 1;
  f.cache = 0.1;
  f.overlap = 12;
  f.clock_loss = 1e-9;
  f.move = 1e18;
  f.token = 1e-15;
  f.floor = 1e-5;
  const ExpertForm::Setting on{{100, 1e6, 2e12, 1e16}, *kernel_format("bf16"), 2};
  const double weights = 8 * 3 * 4096.0 * 1024 * 2;
  EXPECT_NEAR(ExpertForm::time(f, on, ExpertForm::shape({1, 4096, 1024, 8, 64})).time_s,
              1e-5 + weights / 1e12, 0.01 * weights / 1e12);
  // Without a gate, two products instead of three.
  const ExpertForm::Setting plain{on.machine, on.format, 1};
  EXPECT_NEAR(ExpertForm::time(f, plain, ExpertForm::shape({1, 4096, 1024, 8, 64})).time_s,
              1e-5 + weights / 1.5e12, 0.01 * weights / 1e12);
}

}  // namespace
}  // namespace braid
