#include "braid/kernels/kernel_fit.h"

#include <gtest/gtest.h>

#include "braid/kernels/held_out.h"
#include "braid/kernels/measured_kernels.h"
#include "braid/system/system.h"

namespace braid {
namespace {

/// Times that the form gives with known figures, of shapes on a grid.
void fill(FormGroup<GemmForm>& group, const GemmFigures& truth) {
  for (const double m : {1, 16, 100, 512, 2048, 8192}) {
    for (const double n : {64, 768, 4096, 12288}) {
      for (const double k : {128, 1024, 4096, 16384}) {
        const GemmShape shape{m, n, k, 6 * n * k * group.setting.format.weight_bytes};
        group.shapes.push_back(shape);
        group.measured_s.push_back(GemmForm::time(truth, group.setting, shape).time_s);
        group.held_out.push_back(group.shapes.size() % 5 == 0);
      }
    }
  }
}

GemmFigures truth(double memory, int splits) {
  GemmFigures f;
  for (const auto& field : GemmForm::kFields) f.*field.field = field.start;
  f.peak = 0.9;
  f.feed = 250e9;
  f.step = 1e-9;
  f.floor = 2e-6;
  f.memory = memory;
  f.splits_k = splits;
  return f;
}

TEST(KernelFit, FindsTheFiguresThatTimesWereMadeWith) {
  const Chip chip = load_chip("h100-sxm");
  FormGroup<GemmForm> bf16, fp8;
  bf16.setting = *GemmForm::setting(chip, "bf16");
  fp8.setting = *GemmForm::setting(chip, "fp8");
  fill(bf16, truth(0.7, 1));
  fill(fp8, truth(0.7, 0));
  const std::vector<FittedKernel> fits = fit_kernels({&bf16, &fp8});
  ASSERT_EQ(fits.size(), 2U);
  const GemmFigures found = FormGroup<GemmForm>::unpacked(fits[0].figures, fits[0].choice);
  EXPECT_EQ(found.splits_k, 1);
  EXPECT_EQ(found.rows_by_m, 0);
  EXPECT_NEAR(found.peak, 0.9, 0.02);
  EXPECT_NEAR(found.memory, 0.7, 0.02);
  EXPECT_NEAR(found.floor, 2e-6, 1e-7);
  EXPECT_EQ(found.quantise, 0);  // Nothing is quantised.
  EXPECT_LT(kernel_error(bf16, found, false), 0.01);
  EXPECT_LT(kernel_error(bf16, found, true), 0.01);
  const GemmFigures other = FormGroup<GemmForm>::unpacked(fits[1].figures, fits[1].choice);
  EXPECT_EQ(other.memory, found.memory);  // One for the chip.
  EXPECT_EQ(other.cache, found.cache);
  EXPECT_LT(kernel_error(fp8, other, true), 0.01);
}

TEST(HeldOut, IsAFifthByTheChecksumOfZip) {
  EXPECT_EQ(crc32("123456789"), 0xCBF43926U);
  int held_out = 0;
  for (int m = 1; m <= 5000; ++m) held_out += is_held_out(std::to_string(m) + ",64,64") ? 1 : 0;
  EXPECT_NEAR(held_out, 1000, 60);
}

}  // namespace
}  // namespace braid
