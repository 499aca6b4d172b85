#include "braid/chip/accelerator/area.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "chip/accelerator/templates.h"

namespace braid {
namespace {

struct PublishedRow {
  std::int64_t tensor, vector, width, depth;
  double mib, um2;
};

// Rows of cores.json of Phaze's artifact (github.com/msr-fiddle/phaze, version 1.0).
constexpr PublishedRow kPublished[] = {
    {4096, 4096, 16, 2, 32, 246416424.736},  {2048, 4096, 4, 32, 4, 259785449.81913602},
    {64, 2048, 8, 2, 64, 114787902.146816},  {16, 2048, 8, 32, 64, 116931942.56460801},
    {4, 256, 8, 64, 64, 93377242.489472},    {8, 2, 128, 128, 128, 278826676.31216},
    {8, 2, 128, 128, 2, 106741896.31216002}, {2, 512, 256, 256, 32, 255687512.60620803},
    {1, 1, 2, 2, 2, 3355047.77325}};

TEST(Area, OfPublishedArchitectures) {
  for (const PublishedRow& row : kPublished) {
    const Accelerator chip = template_of(row.tensor, row.vector, row.width, row.depth, row.mib);
    EXPECT_NEAR(die_area(chip).total_um2(), row.um2, 6e-8);
  }
  EXPECT_NEAR(kTpuV4AreaUm2, die_area(tpu_v4_template()).total_um2(), 6e-8);
}

TEST(Area, OfBuffersBetweenPowersOfTwoIsBetweenTheirs) {
  for (double bytes = kLeastL2Bytes; bytes < kMostL2Bytes; bytes *= 1.07) {
    EXPECT_LT(l2_area_um2(bytes), l2_area_um2(std::min(bytes * 1.07, kMostL2Bytes)));
  }
  for (double bytes = kLeastGlobalBufferBytes; bytes < kMostGlobalBufferBytes; bytes *= 1.07) {
    EXPECT_LT(global_buffer_area_um2(bytes),
              global_buffer_area_um2(std::min(bytes * 1.07, kMostGlobalBufferBytes)));
  }
  // Half way in the logarithms: the geometric mean.
  EXPECT_NEAR(l2_area_um2(1024 * std::sqrt(2.0)), std::sqrt(6133.98 * 8248.43), 1e-6);
  EXPECT_EQ(l2_area_um2(kMostL2Bytes), 1634130);
  EXPECT_EQ(global_buffer_area_um2(kMostGlobalBufferBytes), 175423000);
}

TEST(Area, OfOddWidthsIsInterpolated) {
  const double below = die_area(template_of(4, 4, 96, 64, 8)).total_um2();
  const double odd = die_area(template_of(4, 4, 100, 65, 8)).total_um2();
  const double above = die_area(template_of(4, 4, 128, 128, 8)).total_um2();
  EXPECT_LT(below, odd);
  EXPECT_LT(odd, above);
}

TEST(Accelerator, PeaksAndPublishedBuffers) {
  const Accelerator chip = tpu_v4_template();
  EXPECT_DOUBLE_EQ(matmul_peak_flops(chip), 275.2512e12);
  EXPECT_DOUBLE_EQ(vector_peak_flops(chip), 268.8e9);
  EXPECT_EQ(published_l2_bytes(256.0 * 256), 0x1p20);  // The most, appendix C.1.
  EXPECT_EQ(published_l2_bytes(256), 4096);            // The most of a vector core.
  EXPECT_EQ(published_l2_bytes(8 * 8), 1024);
  EXPECT_EQ(published_l2_bytes(2), 1024);
}

}  // namespace
}  // namespace braid
