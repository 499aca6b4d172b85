#include "braid/kernels/gemm.h"

#include <cmath>

#include <gtest/gtest.h>

#include "braid/system/system.h"

namespace braid {
namespace {

/// One SM's worth of everything is easy to follow by hand.
GemmForm::Setting small_machine() { return {{4, 1e6, 1e11, 4e12}, *kernel_format("bf16")}; }

GemmFigures plain_figures() {
  GemmFigures f;
  f.peak = 0.5;
  f.feed = 1e15;
  f.step = 1e-15;
  f.epilogue = 1e-12;
  f.whole_waves = 1;
  f.memory = 0.8;
  f.l2_gain = 2;
  f.cache = 1;
  f.clock_loss = 1e-9;
  f.overlap = 12;
  f.reduce = 1e-6;
  f.floor = 2e-6;
  f.strip_columns = 1e6;
  return f;
}

TEST(Gemm, LargeProductsTakeTheirWorkAtTheReachedPeak) {
  const GemmShape shape{8192, 8192, 8192};
  const double work_s = 2 * std::pow(8192.0, 3) / (0.5 * 4e12);
  EXPECT_NEAR(GemmForm::time(plain_figures(), small_machine(), shape).time_s / work_s, 1, 1e-3);
}

TEST(Gemm, OneRowTakesItsWeightsFromMemory) {
  const GemmShape shape{1, 8192, 64};
  const double bytes = 2.0 * (8192 * 64 + 64 + 8192);
  EXPECT_NEAR(GemmForm::time(plain_figures(), small_machine(), shape).time_s,
              2e-6 + bytes / (0.8 * 1e11), 2e-7);
}

TEST(Gemm, OneTileMoreIsAWaveMore) {
  GemmForm::Setting setting = small_machine();
  setting.machine.memory_bytes_per_s = 1e15;
  // The first variant has tiles of 16 x 64: four of them on four SMs, then five.
  const double four = GemmForm::time_of(plain_figures(), setting, {16, 256, 4096}, 0);
  const double five = GemmForm::time_of(plain_figures(), setting, {16, 257, 4096}, 0);
  EXPECT_NEAR((five - 2e-6) / (four - 2e-6), 2, 1e-3);
}

TEST(Gemm, WeightsWithinTheCacheComeFromThere) {
  GemmForm::Setting setting = small_machine();
  setting.machine.flops_per_s = 1e18;
  GemmShape shape{1, 512, 256};
  const double cold = GemmForm::time(plain_figures(), setting, shape).time_s;
  shape.cycled_bytes = 2.0 * 512 * 256;
  const double warm = GemmForm::time(plain_figures(), setting, shape).time_s;
  EXPECT_NEAR((cold - 2e-6) / (warm - 2e-6), 2, 0.05);
}

TEST(Gemm, LongProductsOfFewRowsAreFasterSplit) {
  GemmFigures f = plain_figures();
  f.step = 1e-8;
  const GemmShape shape{16, 64, 65536};
  const double whole = GemmForm::time(f, small_machine(), shape).time_s;
  f.splits_k = 1;
  const double split = GemmForm::time(f, small_machine(), shape).time_s;
  EXPECT_LT(split, 0.3 * whole);
}

TEST(Gemm, QuantisingIsPartOfTheTime) {
  GemmForm::Setting setting = small_machine();
  setting.format = *kernel_format("fp8");
  GemmFigures f = plain_figures();
  f.quantise = 1e10;
  f.quantise_row = 1e-8;
  const GemmShape shape{128, 64, 1024};
  const double with = GemmForm::time(f, setting, shape).time_s;
  f.quantise = 1e30;
  f.quantise_row = 1e-30;
  const double without = GemmForm::time(f, setting, shape).time_s;
  EXPECT_NEAR(with - without, 128 * 1024 * 5 / 1e10 + 128 * 1e-8, 1e-12);
}

TEST(Gemm, AHostsFloorHidesShortKernels) {
  GemmFigures f = plain_figures();
  f.floor = 1e-3;
  const GemmShape shape{64, 64, 64};
  f.floor_of_host = 1;
  EXPECT_NEAR(GemmForm::time(f, small_machine(), shape).time_s, 1e-3, 1e-6);
}

TEST(Gemm, NeedsAPeakInTheFormat) {
  const Chip chip = load_chip("a100-sxm-80gb");
  EXPECT_TRUE(GemmForm::setting(chip, "bf16"));
  EXPECT_FALSE(GemmForm::setting(chip, "fp8"));
  EXPECT_FALSE(GemmForm::setting(chip, "fp7"));
}

}  // namespace
}  // namespace braid
