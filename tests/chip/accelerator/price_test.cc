#include "braid/chip/accelerator/price.h"

#include <cmath>

#include <gtest/gtest.h>

#include "chip/accelerator/templates.h"

namespace braid {
namespace {

struct CostedDie {
  double mm2, wafer_usd, defects_per_cm2, dies, yield, usd;
};

// Answers of Chiplet Actuary's own program (github.com/Yinxiao-Feng/chiplet-actuary, 2c91fb9) for
// one die of its 7, 20 and 5 nm.
constexpr CostedDie kCosted[] = {
    {50, 9346, 0.09, 1160.7652416821966, 0.9560939920415719, 8.421332065404764},
    {278.82667631216, 9346, 0.09, 193.19457536488022, 0.7804792947428845, 61.982553313285344},
    {600, 9346, 0.09, 82.2236247023362, 0.5910087234515211, 192.32479021200064},
    {600, 3677, 0.07, 82.2236247023362, 0.6627089111059621, 67.47986443471623},
    {278.82667631216, 16988, 0.11, 193.19457536488022, 0.7392642619824162, 118.94538947491405}};

TEST(Price, OfDiesIsChipletActuarys) {
  for (const CostedDie& die : kCosted) {
    PriceFigures figures;
    figures.wafer_usd = die.wafer_usd;
    figures.defects_per_cm2 = die.defects_per_cm2;
    EXPECT_NEAR(dies_per_wafer(die.mm2 * 1e6, figures), die.dies, 1e-9 * die.dies);
    EXPECT_NEAR(die_yield(die.mm2 * 1e6, figures), die.yield, 1e-12);
    EXPECT_NEAR(die_usd(die.mm2 * 1e6, figures), die.usd, 1e-9 * die.usd);
  }
}

TEST(Price, OfTheTpuV4TemplateIsDfmodels) {
  const ChipPrice price = chip_price(tpu_v4_template(), PriceFigures{});
  EXPECT_NEAR(price.chip_usd, 4474.82, 0.1);  // Ko et al., DFModel, artifact; without memory.
  EXPECT_NEAR(price.hbm_usd, 268.8, 1e-9);
  EXPECT_DOUBLE_EQ(price.total_usd(), price.chip_usd + price.hbm_usd);
}

TEST(Price, RisesFasterThanTheAreaAndEndsAtTheWafer) {
  const PriceFigures figures;
  double per_um2 = 0;
  for (double area = 1e8; area < 5e9; area *= 1.5) {
    EXPECT_GT(die_usd(area, figures) / area, per_um2);
    per_um2 = die_usd(area, figures) / area;
  }
  EXPECT_TRUE(std::isinf(die_usd(6e10, figures)));
  EXPECT_TRUE(std::isinf(die_usd(1e15, figures)));
}

TEST(Price, OfMemoryGoesByBandwidthAndBySizeWhereThatHasAPrice) {
  Accelerator chip = tpu_v4_template();
  PriceFigures figures;
  figures.hbm_usd_per_gib = 10;
  EXPECT_NEAR(chip_price(chip, figures).hbm_usd, 268.8 + 320, 1e-9);
  chip.hbm_bytes *= 2;
  EXPECT_NEAR(chip_price(chip, figures).hbm_usd, 268.8 + 640, 1e-9);
}

}  // namespace
}  // namespace braid
