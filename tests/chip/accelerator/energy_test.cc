#include "braid/chip/accelerator/energy.h"

#include <gtest/gtest.h>

#include "chip/accelerator/templates.h"

namespace braid {
namespace {

TEST(Energy, OfAnSramIsPublishedAtThreeSizesAndRisesBetween) {
  EXPECT_DOUBLE_EQ(sram_byte_j(8 * 1024), 7.5e-12 / 8);
  EXPECT_DOUBLE_EQ(sram_byte_j(32 * 1024), 8.5e-12 / 8);
  EXPECT_DOUBLE_EQ(sram_byte_j(1024 * 1024), 14e-12 / 8);
  EXPECT_DOUBLE_EQ(sram_byte_j(1024), sram_byte_j(8 * 1024));
  EXPECT_DOUBLE_EQ(sram_byte_j(128 * 0x1p20), sram_byte_j(0x1p20));
  double before = sram_byte_j(8 * 1024);
  for (double bytes = 9 * 1024; bytes <= 0x1p20; bytes *= 1.1) {
    EXPECT_GT(sram_byte_j(bytes), before);
    before = sram_byte_j(bytes);
  }
}

/// The busiest second of Phaze's TPUv4 template, term by term.
TEST(Energy, OfTheBusiestSecondIsTheSumOfItsTerms) {
  const Accelerator chip = tpu_v4_template();
  const ChipEnergy second = chip_energy(chip, EnergyFigures{}, busiest_second(chip));
  EXPECT_NEAR(second.arithmetic_j, 131072 * 1.05 * 0.59e-3 + 256 * 1.05 * 1.31e-3, 1e-9);
  const double words = 2 * 2 * 1.05e9;  // Bytes of a word, read and written, every cycle.
  EXPECT_NEAR(second.on_chip_j,
              131072 * 2 * words * 0.03e-12 + 8 * 64 * words * sram_byte_j(256 * 1024) +
                  2 * 64 * words * 7.5e-12 / 8 + 256 * words * 14e-12 / 8,
              1e-9);
  EXPECT_NEAR(second.hbm_j, 268.8 * 0.05624, 1e-9);
  EXPECT_NEAR(second.link_j, 4 * 1.073741824 * 0.052, 1e-9);
  EXPECT_NEAR(second.static_j, 90, 1e-6);  // TPU v4's power when idle.
  // TPU v4 drew 192 W at most (Jouppi et al. 2023, table 4), not with all units busy at once.
  EXPECT_GT(peak_power_w(chip, EnergyFigures{}), 192);
  EXPECT_LT(peak_power_w(chip, EnergyFigures{}), 1.2 * 192);
}

TEST(Energy, GrowsWithEachActivityAndInProportion) {
  const Accelerator chip = tpu_v4_template();
  const EnergyFigures figures;
  double ChipActivity::*const fields[] = {&ChipActivity::macs,
                                          &ChipActivity::vector_operations,
                                          &ChipActivity::register_bytes,
                                          &ChipActivity::tensor_l2_bytes,
                                          &ChipActivity::vector_l2_bytes,
                                          &ChipActivity::global_buffer_bytes,
                                          &ChipActivity::hbm_bytes,
                                          &ChipActivity::link_bytes,
                                          &ChipActivity::seconds};
  double sum = 0;
  ChipActivity all;
  for (const auto field : fields) {
    ChipActivity one, three;
    one.*field = 1e9;
    three.*field = 3e9;
    all.*field = 1e9;
    const double energy = chip_energy(chip, figures, one).total_j();
    EXPECT_GT(energy, 0);
    EXPECT_NEAR(chip_energy(chip, figures, three).total_j(), 3 * energy, 1e-9 * energy);
    sum += energy;
  }
  EXPECT_NEAR(chip_energy(chip, figures, all).total_j(), sum, 1e-9 * sum);
}

TEST(Energy, OfFormats) {
  EXPECT_EQ(published_mac_j(Dtype::bf16), EnergyFigures{}.mac_j);
  EXPECT_LT(*published_mac_j(Dtype::i8), *published_mac_j(Dtype::bf16));
  EXPECT_LT(*published_mac_j(Dtype::bf16), *published_mac_j(Dtype::f16));
  EXPECT_LT(*published_mac_j(Dtype::f16), *published_mac_j(Dtype::f32));
  EXPECT_FALSE(published_mac_j(Dtype::f8));
}

}  // namespace
}  // namespace braid
