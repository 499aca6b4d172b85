#include "braid/system/accelerator_chip.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/document.h"
#include "braid/base/json.h"
#include "braid/chip/accelerator/area.h"
#include "braid/chip/accelerator/price.h"
#include "braid/system/chip_reader.h"
#include "braid/system/system_json.h"

namespace braid {
namespace {

using ::testing::HasSubstr;

constexpr const char* kDesign = R"(name: ours
accelerator:
  tensor_cores: {count: 4, width: 96, depth: 80}
  vector_cores: {count: 8, lanes: 96}
  global_buffer: 24 MiB
  hbm: {name: HBM3, size: 48 GB, bandwidth: 1 TB/s}
  clock: 2 GHz
  format: f16
  registers: 64 B
  words_per_cycle: {l2: 128, global_buffer: 512}
  link: {bandwidth: 50 GB/s, latency: 2 us}
  energy: {mac: 1 pJ, hbm_byte: 40 pJ, static_per_mm2: 0.2 W}
  cost: {wafer: 9346 USD, defects_per_cm2: 0.09, markup: 10, hbm_per_gib: 8 USD}
)";

Chip read(const std::string& text) {
  return read_chip(Document::parse(text, Document::Syntax::yaml, "ours.yaml").root());
}

TEST(AcceleratorChip, HasTheFiguresOfItsFile) {
  const Chip chip = read(kDesign);
  ASSERT_TRUE(chip.accelerator);
  const AcceleratorDesign& design = *chip.accelerator;
  EXPECT_EQ(chip.name, "ours");
  EXPECT_DOUBLE_EQ(*matmul_peak(chip, Dtype::f16), 2.0 * 4 * 96 * 80 * 2e9);
  EXPECT_FALSE(matmul_peak(chip, Dtype::bf16));
  EXPECT_DOUBLE_EQ(chip.vector_flops_per_s, 8.0 * 96 * 2e9);
  EXPECT_EQ(chip.compute_units, 4);
  EXPECT_EQ(chip.memory, (Memory{"HBM3", 48e9, 1e12}));
  EXPECT_EQ(*chip.on_chip, (Memory{"global buffer", 24 * 0x1p20, 512.0 * 2 * 2e9}));
  EXPECT_EQ(design.chip.register_bytes, 64);
  EXPECT_EQ(design.chip.rates, (OnChipRates{2, 128, 512}));
  EXPECT_DOUBLE_EQ(design.chip.tensor.l2_bytes, 96.0 * 80 / 64 * 1024);
  EXPECT_DOUBLE_EQ(design.energy.mac_j, 1e-12);
  EXPECT_DOUBLE_EQ(design.energy.static_w_per_um2, 0.2e-6);
  EXPECT_EQ(design.energy.vector_operation_j, EnergyFigures{}.vector_operation_j);
  EXPECT_EQ(design.price.markup, 10);
  EXPECT_EQ(chip.efficiency.tile_n, 96);
  EXPECT_EQ(chip.efficiency.tile_k, 80);
  EXPECT_DOUBLE_EQ(*chip.power_w, peak_power_w(design.chip, design.energy));
  EXPECT_DOUBLE_EQ(*chip.price_usd, chip_price(design.chip, design.price).total_usd());
}

TEST(AcceleratorChip, ReadsBackEqual) {
  const Chip chip = read(kDesign);
  const Document document =
      Document::parse(to_text(to_json(chip)), Document::Syntax::json, "chip.json");
  EXPECT_EQ(chip_from_json(document.root()), chip);
}

TEST(AcceleratorChip, OwnPowerAndPriceComeFirst) {
  const Chip chip = read(std::string(kDesign) + "power: 321 W\nprice: 4321 USD\n");
  EXPECT_EQ(chip.power_w, 321);
  EXPECT_EQ(chip.price_usd, 4321);
  for (const Provenance& entry : chip.provenance) {
    EXPECT_NE(entry.key, "power");
    EXPECT_NE(entry.key, "price");
  }
}

TEST(AcceleratorChip, PriceIsLeftOutOfADieLargerThanAWafer) {
  std::string text = kDesign;
  text.replace(text.find("count: 4"), 8, "count: 99999");
  EXPECT_FALSE(read(text).price_usd);
  EXPECT_TRUE(read(text).power_w);
}

TEST(AcceleratorChip, OfTheCatalogueHaveThePublishedArea) {
  EXPECT_NEAR(die_area(load_chip("phaze-tpuv4").accelerator->chip).total_um2(), 278826676.31, 5e-3);
  const Accelerator common = load_chip("phaze-common").accelerator->chip;
  EXPECT_NEAR(die_area(common).total_um2() / kTpuV4AreaUm2, 0.917, 5e-4);
  EXPECT_EQ(matmul_peak(load_chip("phaze-common"), Dtype::bf16),
            matmul_peak(load_chip("phaze-tpuv4"), Dtype::bf16));
  const System charged = load_system("phaze-common-1024-as-charged");
  const System corrected = load_system("phaze-common-1024");
  EXPECT_EQ(charged.device_count, 1024);
  EXPECT_EQ(corrected.groups[0].intra_node.bytes_per_s, 4 * 0x1p30);
  EXPECT_DOUBLE_EQ(charged.groups[0].intra_node.bytes_per_s, 4000 * 0x1p30);
}

// Phaze's flat network (Adnan et al. 2024, section 5): one switch of the chips' own links.
TEST(AcceleratorChip, OfTheCatalogueAreOnTheFlatNetworkOfTheirLinks) {
  const Chip chip = load_chip("phaze-tpuv4");
  const System system = load_system("phaze-tpuv4-1024");
  EXPECT_EQ(system.device_count, 1024);
  ASSERT_EQ(system.groups.size(), 1U);
  const NetworkLevel& level = system.groups[0].intra_node;
  EXPECT_EQ(level.size, 1024);
  EXPECT_EQ(level.bytes_per_s, chip.accelerator->chip.link_bytes_per_s);
  EXPECT_EQ(level.unit_bytes_per_s, level.bytes_per_s);
  EXPECT_EQ(level.latency_s, chip.accelerator->chip.link_latency_s);
  EXPECT_EQ(level.efficiency, 1);
  EXPECT_EQ(system.groups[0].chip.peaks, chip.peaks);
  EXPECT_EQ(system.groups[0].chip.power_w, chip.power_w);
  const Document document =
      Document::parse(to_text(to_json(system)), Document::Syntax::json, "system.json");
  EXPECT_EQ(system_from_json(document.root()), system);
}

TEST(AcceleratorChip, FormatsWithoutAPublishedEnergyNeedOne) {
  std::string text = kDesign;
  text.replace(text.find("f16"), 3, "f8");
  EXPECT_DOUBLE_EQ(read(text).accelerator->energy.mac_j, 1e-12);
  text.replace(text.find("mac: 1 pJ, "), 11, "");
  try {
    read(text);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "ours.yaml:12: accelerator.energy: no energy of a multiplication of two f8 is "
                 "published; give it: energy: {mac: 0.3 pJ}");
  }
}

/// A part of kDesign, what it is exchanged for, and what is said.
struct Fault {
  const char* from;
  const char* to;
  const char* said;
};

class AcceleratorFaults : public ::testing::TestWithParam<Fault> {};

TEST_P(AcceleratorFaults, AreOneClearLine) {
  std::string text = kDesign;
  const Fault& fault = GetParam();
  ASSERT_NE(text.find(fault.from), std::string::npos);
  text.replace(text.find(fault.from), std::string(fault.from).size(), fault.to);
  try {
    read(text);
    FAIL() << fault.to;
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr(fault.said));
    EXPECT_THAT(error.what(), HasSubstr("ours.yaml:"));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Each, AcceleratorFaults,
    ::testing::Values(
        Fault{"count: 4", "count: 0", "tensor_cores.count: 0 tensor cores; give from 1 to"},
        Fault{"count: 8", "count: -3", "vector_cores.count: -3 vector cores; give from 1 to"},
        Fault{"width: 96", "width: 0", "tensor_cores.width: 0 columns"},
        Fault{"depth: 80", "depth: 5000", "tensor_cores.depth: 5000 rows"},
        Fault{"lanes: 96", "lanes: 0", "vector_cores.lanes: 0 lanes"},
        Fault{"depth: 80}", "depth: 80, l2: 8 KiB}",
              "tensor_cores.l2: 8.00 KiB do not hold the weights of one array of 15.0 KiB"},
        Fault{"lanes: 96}", "lanes: 96, l2: 100 B}",
              "vector_cores.l2: 100 B do not hold the operands of all lanes of 576 B"},
        Fault{"24 MiB", "10 kB", "global_buffer: 9.77 KiB do not hold the weights of one array"},
        Fault{"24 MiB", "1 MiB", "the area model has no buffer of 1.00 MiB; give one from 2.00"},
        Fault{"24 MiB", "256 MiB", "the area model has no buffer of 256 MiB"},
        Fault{"depth: 80}", "depth: 80, l2: 2 MiB}", "the area model has no buffer of 2.00 MiB"},
        Fault{"width: 96, depth: 80", "width: 512, depth: 512",
              "tensor_cores: the area model has no buffer of 4.00 MiB"},
        Fault{"48 GB", "0 GB", "hbm.size: must be more than zero"},
        Fault{"1 TB/s", "0 TB/s", "hbm.bandwidth: must be more than zero"},
        Fault{"2 GHz", "0 Hz", "clock: must be more than zero"},
        Fault{"64 B", "0 B", "registers: must be more than zero"},
        Fault{"l2: 128,", "l2: 0,", "words_per_cycle.l2: 0 is out of range"},
        Fault{"2 GHz", "2 GB", "is not a frequency"},
        Fault{"format: f16", "format: f64", "'f64' is no format of a systolic array"},
        Fault{"format: f16", "format: complex", "'complex' is no format of a systolic array"},
        Fault{"50 GB/s, ", "0 GB/s, ", "link.bandwidth: a bandwidth of zero"},
        Fault{"markup: 10", "mark: 10", "did you mean"},
        Fault{"markup: 10", "edge_mm: 200", "the edge leaves nothing of the wafer"},
        Fault{"name: ours\n", "name: ours\nvector: 3 TFLOP/s\n",
              "vector: follows from the accelerator; leave it out"},
        Fault{"  global_buffer: 24 MiB\n", "", "global_buffer"}));

}  // namespace
}  // namespace braid
