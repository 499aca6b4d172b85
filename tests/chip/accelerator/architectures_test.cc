#include "braid/chip/accelerator/architectures.h"

#include <algorithm>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "chip/accelerator/templates.h"

namespace braid {
namespace {

/// FNV-1a over the numbers of all architectures in order.
std::uint64_t fingerprint(const std::vector<Architecture>& all) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const Architecture& one : all) {
    for (const std::uint64_t number :
         {one.tensor_cores, one.vector_cores, one.width, one.depth, one.global_buffer_mib}) {
      hash = (hash ^ number) * 0x100000001b3;
    }
  }
  return hash;
}

// Facts of cores.json of Phaze's artifact (github.com/msr-fiddle/phaze, version 1.0), computed from
// the file by another program.
TEST(Architectures, OfPhaseAreThePublishedOnesInTheirOrder) {
  const std::vector<Architecture> all = architectures(ArchitectureSpace{});
  ASSERT_EQ(all.size(), 29360U);
  EXPECT_EQ(fingerprint(all), 0x1cb734656d71aa7fU);
  const double sum =
      std::accumulate(all.begin(), all.end(), 0.0,
                      [](double before, const Architecture& one) { return before + one.area_um2; });
  EXPECT_NEAR(sum, 3938358656612.7314, 29360 * 6e-8);
  const auto expect = [&](std::size_t at, const Architecture& published) {
    EXPECT_EQ(all[at].tensor_cores, published.tensor_cores) << at;
    EXPECT_EQ(all[at].vector_cores, published.vector_cores) << at;
    EXPECT_EQ(all[at].width, published.width) << at;
    EXPECT_EQ(all[at].depth, published.depth) << at;
    EXPECT_EQ(all[at].global_buffer_mib, published.global_buffer_mib) << at;
    EXPECT_NEAR(all[at].area_um2, published.area_um2, 6e-8) << at;
  };
  expect(0, {4096, 4096, 16, 2, 32, 246416424.736});
  expect(1000, {2048, 4096, 4, 32, 4, 259785449.81913602});
  expect(10000, {64, 2048, 8, 2, 64, 114787902.146816});
  expect(20000, {4, 256, 8, 64, 64, 93377242.489472});
  expect(29359, {1, 1, 2, 2, 2, 3355047.77325});
}

/// Counts down through the powers of two of a range.
template <typename Visit>
void each_down(const PowersOfTwo& range, const Visit& visit) {
  for (std::int64_t value = std::int64_t{1} << range.most; value >= std::int64_t{1} << range.least;
       value /= 2) {
    visit(value);
  }
}

TEST(Architectures, AreAllCombinationsWithinTheArea) {
  std::mt19937 random(7);
  const auto range = [&](int most) {
    const int first = static_cast<int>(random() % static_cast<unsigned>(most + 1));
    const int second = static_cast<int>(random() % static_cast<unsigned>(most + 1));
    return PowersOfTwo{std::min(first, second), std::max(first, second)};
  };
  for (int trial = 0; trial < 30; ++trial) {
    ArchitectureSpace space{range(4), range(4), range(6), range(6), range(6)};
    space.global_buffers_mib = {space.global_buffers_mib.least + 1,
                                space.global_buffers_mib.most + 1};
    space.most_area_um2 = 1e6 * static_cast<double>(1 + random() % 100);
    space.least_share = 0.1 * static_cast<double>(random() % 10);
    space.least_share_of_single = 0.1 * static_cast<double>(random() % 3);
    ASSERT_TRUE(is_in_model(space));
    std::vector<Architecture> expected;
    double least = 1e30;
    each_down(space.tensor_cores, [&](std::int64_t n) {
      each_down(space.vector_cores, [&](std::int64_t v) {
        each_down(space.widths, [&](std::int64_t w) {
          each_down(space.depths, [&](std::int64_t d) {
            each_down(space.global_buffers_mib, [&](std::int64_t g) {
              const Accelerator chip = template_of(n, v, w, d, static_cast<double>(g));
              const double area = die_area(chip).total_um2();
              least = std::min(least, area);
              const double share =
                  n == 1 || v == 1 ? space.least_share_of_single : space.least_share;
              if (area > space.most_area_um2 || area < share * space.most_area_um2) return;
              expected.push_back({static_cast<std::uint16_t>(n), static_cast<std::uint16_t>(v),
                                  static_cast<std::uint16_t>(w), static_cast<std::uint16_t>(d),
                                  static_cast<std::uint16_t>(g), area});
            });
          });
        });
      });
    });
    const std::vector<Architecture> found = architectures(space);
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_NEAR(found[i].area_um2, expected[i].area_um2, 1e-6);
      const Architecture same_area{
          found[i].tensor_cores, found[i].vector_cores,      found[i].width,
          found[i].depth,        found[i].global_buffer_mib, expected[i].area_um2};
      EXPECT_EQ(same_area, expected[i]);
    }
    EXPECT_NEAR(least_area_um2(space), least, 1e-6);
    if (least > space.most_area_um2) {
      EXPECT_TRUE(found.empty());
    }
  }
}

TEST(Architectures, AsAcceleratorsTakeTheRestFromOne) {
  Accelerator rest = tpu_v4_template();
  rest.clock_hz = 2e9;
  rest.hbm_bytes = 80e9;
  for (const Architecture& one : architectures(ArchitectureSpace{})) {
    if (one.tensor_cores < 1024) break;
    const Accelerator chip = accelerator_of(one, rest);
    EXPECT_NEAR(die_area(chip).total_um2(), one.area_um2, 6e-8);
    EXPECT_EQ(chip.clock_hz, 2e9);
    EXPECT_EQ(chip.hbm_bytes, 80e9);
    EXPECT_EQ(chip.vector.lanes, chip.tensor.width);
  }
}

TEST(Architectures, OutsideTheAreaModelAreNone) {
  ArchitectureSpace space;
  space.widths.most = 9;  // An L2 of 2 MB.
  EXPECT_FALSE(is_in_model(space));
  space = {};
  space.global_buffers_mib = {0, 7};
  EXPECT_FALSE(is_in_model(space));
  space = {};
  space.depths = {4, 3};
  EXPECT_FALSE(is_in_model(space));
  EXPECT_TRUE(is_in_model(ArchitectureSpace{}));
}

}  // namespace
}  // namespace braid
