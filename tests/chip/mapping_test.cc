#include "braid/chip/mapping.h"

#include <random>

#include <gtest/gtest.h>

#include "braid/chip/tile_curve.h"

namespace braid {
namespace {

ChipWork chain(std::size_t kernels) {
  ChipWork work;
  for (std::size_t i = 0; i < kernels; ++i) {
    ChipKernel kernel;
    kernel.name = "k" + std::to_string(i);
    kernel.rows = 1024;
    kernel.depth = 256;
    kernel.columns = 512;
    kernel.flops = 2.0 * 1024 * 256 * 512;
    kernel.weight_bytes = 1000;
    kernel.network_s = 1e-6;
    work.kernels.push_back(kernel);
    if (i > 0) {
      const auto to = static_cast<std::int32_t>(i);
      work.tensors.push_back({to - 1, to, 4000, 40, 2, 0, 0});
    }
  }
  return work;
}

const DataflowChip kChip{16, 32, 8, 1e9, 2500, 1e9, 1e9, 0, 0};

// DFModel, section V-B, by hand: two kernels together, then one.
TEST(Mapping, CountsTensorsByWhereTheirEndsAre) {
  const ChipWork work = chain(3);
  const MappingCost cost =
      evaluate_mapping(work, kChip, {{0, 0, 1}, {}}, dfmodel_rules(PartitionOverlap::none));
  ASSERT_EQ(cost.partitions.size(), 2U);
  EXPECT_FALSE(cost.violation);
  const double rate = 0.9 * 2 * 16 * 32 * 8 * 1e9;
  EXPECT_DOUBLE_EQ(cost.partitions[0].compute_s, 2 * work.kernels[0].flops / rate);
  EXPECT_DOUBLE_EQ(cost.partitions[0].memory_s, 4000e-9);
  EXPECT_DOUBLE_EQ(cost.partitions[1].memory_s, 4000e-9);
  EXPECT_DOUBLE_EQ(cost.partitions[0].network_s, 2e-6);
  EXPECT_DOUBLE_EQ(cost.partitions[0].sram_bytes, 2000 + 2 * 40 + 2 * 40);
  EXPECT_DOUBLE_EQ(cost.partitions[1].sram_bytes, 1000 + 2 * 40);
  EXPECT_DOUBLE_EQ(cost.partitions[1].dram_bytes, 4000);
  EXPECT_DOUBLE_EQ(cost.time_s, cost.partitions[0].time_s + cost.partitions[1].time_s);
  MappingRules rules = dfmodel_rules(PartitionOverlap::all);
  rules.weight_traffic = true;
  const MappingCost charged = evaluate_mapping(work, kChip, {{0, 0, 1}, {}}, rules);
  EXPECT_DOUBLE_EQ(charged.partitions[0].memory_s, 6000e-9);
  EXPECT_DOUBLE_EQ(charged.partitions[0].time_s,
                   std::max({charged.partitions[0].compute_s, 6000e-9, 2e-6}));
}

TEST(Mapping, SharedTensorsCountOnce) {
  ChipWork work = chain(1);
  for (int i = 0; i < 3; ++i) {
    work.kernels.push_back(work.kernels[0]);
    work.tensors.push_back({0, i + 1, 500, 5, 2, 0, 0});
  }
  MappingRules rules = dfmodel_rules(PartitionOverlap::none);
  const Mapping mapping{{0, 1, 1, 2}, {}};
  const MappingCost each = evaluate_mapping(work, kChip, mapping, rules);
  EXPECT_DOUBLE_EQ(each.partitions[0].dram_traffic_bytes, 1500);
  EXPECT_DOUBLE_EQ(each.partitions[1].dram_traffic_bytes, 1000);
  EXPECT_DOUBLE_EQ(each.partitions[1].dram_bytes, 1500);
  rules.share_tensors = true;
  const MappingCost once = evaluate_mapping(work, kChip, mapping, rules);
  EXPECT_DOUBLE_EQ(once.partitions[0].dram_traffic_bytes, 500);
  EXPECT_DOUBLE_EQ(once.partitions[1].dram_traffic_bytes, 500);
  EXPECT_DOUBLE_EQ(once.partitions[1].dram_bytes, 500);
  EXPECT_DOUBLE_EQ(once.partitions[2].dram_traffic_bytes, 500);
}

TEST(Mapping, SaysWhatIsWrong) {
  ChipWork work = chain(3);
  const MappingRules rules = dfmodel_rules(PartitionOverlap::none);
  EXPECT_TRUE(evaluate_mapping(work, kChip, {{1, 0, 1}, {}}, rules).violation);
  EXPECT_TRUE(evaluate_mapping(work, kChip, {{0, 0, 2}, {}}, rules).violation);
  EXPECT_TRUE(evaluate_mapping(work, kChip, {{0, 0, 0}, {}}, rules).violation);  // SRAM
  work.resident_bytes = 1e9;
  EXPECT_TRUE(evaluate_mapping(work, kChip, {{0, 0, 1}, {}}, rules).violation);  // DRAM
  work.resident_bytes = 0;
  MappingRules tiles = rules;
  tiles.whole_tiles = true;
  DataflowChip small = kChip;
  small.tiles = 1;
  EXPECT_TRUE(evaluate_mapping(work, small, {{0, 0, 1}, {}}, tiles).violation);
  EXPECT_TRUE(evaluate_mapping(work, kChip, {{0, 0, 1}, {10, 10, 10}}, tiles).violation);
  EXPECT_FALSE(evaluate_mapping(work, kChip, {{0, 0, 1}, {8, 8, 16}}, tiles).violation);
}

TEST(Mapping, BackwardPassWaitsForTheForwardPass) {
  ChipWork work = chain(3);
  work.kernels[2].backward = true;
  DataflowChip chip = kChip;
  chip.sram_bytes = 1e6;
  MappingRules rules = dfmodel_rules(PartitionOverlap::all);
  EXPECT_TRUE(evaluate_mapping(work, chip, {{0, 0, 0}, {}}, rules).violation);
  EXPECT_FALSE(evaluate_mapping(work, chip, {{0, 0, 1}, {}}, rules).violation);
  rules.separate_passes = false;
  EXPECT_FALSE(evaluate_mapping(work, chip, {{0, 0, 0}, {}}, rules).violation);
}

TEST(Mapping, AKernelAloneIsCutIntoParts) {
  ChipWork work = chain(2);
  work.kernels[1].weight_bytes = 7000;
  MappingRules rules = dfmodel_rules(PartitionOverlap::all);
  const MappingCost cost = evaluate_mapping(work, kChip, kernel_by_kernel(work), rules);
  EXPECT_FALSE(cost.violation);
  EXPECT_DOUBLE_EQ(cost.partitions[1].parts, 3);
  EXPECT_DOUBLE_EQ(cost.partitions[1].dram_traffic_bytes, 4000);
  rules.weight_traffic = true;
  EXPECT_DOUBLE_EQ(
      evaluate_mapping(work, kChip, kernel_by_kernel(work), rules).partitions[1].dram_traffic_bytes,
      7000 + 3 * 4000);
}

double cycles_with(const ChipKernel& kernel, const DataflowChip& chip, std::int64_t tiles) {
  const auto rounds = [](std::int64_t size, std::int64_t by) { return (size + by - 1) / by; };
  double best = 1e300;
  for (std::int64_t rows = 1; rows <= tiles; ++rows) {
    for (std::int64_t columns = 1; rows * columns <= tiles; ++columns) {
      if (!kernel.matrix && columns > 1) break;
      const std::int64_t wide = kernel.matrix ? columns * chip.stages : 1;
      best = std::min(best, static_cast<double>(rounds(kernel.rows, rows * chip.lanes) *
                                                rounds(kernel.columns, wide) *
                                                (kernel.matrix ? kernel.depth : 1)));
    }
  }
  return best;
}

ChipKernel random_kernel(std::mt19937_64& dice) {
  ChipKernel kernel;
  kernel.matrix = dice() % 4 != 0;
  kernel.rows = static_cast<std::int64_t>(dice() % 300 + 1);
  kernel.columns = static_cast<std::int64_t>(dice() % 80 + 1);
  kernel.depth = static_cast<std::int64_t>(dice() % 9 + 1);
  return kernel;
}

TEST(TileCurve, AgreesWithTryingAllGrids) {
  std::mt19937_64 dice(1);
  for (int round = 0; round < 300; ++round) {
    const ChipKernel kernel = random_kernel(dice);
    DataflowChip chip = kChip;
    chip.tiles = static_cast<std::int64_t>(dice() % 40 + 1);
    chip.lanes = static_cast<std::int64_t>(dice() % 12 + 1);
    chip.stages = static_cast<std::int64_t>(dice() % 5 + 1);
    const TileCurve curve = tile_curve(kernel, chip);
    for (std::int64_t tiles = 1; tiles <= chip.tiles; ++tiles) {
      double best = 1e300;
      for (const TileStep& step : curve) {
        if (step.tiles <= tiles) best = std::min(best, step.cycles);
      }
      EXPECT_DOUBLE_EQ(best, cycles_with(kernel, chip, tiles));
    }
  }
}

TEST(TileAllocation, AgreesWithTryingAllShardings) {
  std::mt19937_64 dice(2);
  for (int round = 0; round < 500; ++round) {
    DataflowChip chip = kChip;
    chip.tiles = static_cast<std::int64_t>(dice() % 10 + 1);
    chip.lanes = 8;
    chip.stages = 3;
    const std::size_t count = dice() % 3 + 1;
    std::vector<TileCurve> curves;
    std::vector<ChipKernel> kernels;
    for (std::size_t i = 0; i < count; ++i) {
      kernels.push_back(random_kernel(dice));
      curves.push_back(tile_curve(kernels.back(), chip));
    }
    std::vector<const TileCurve*> pointers;
    for (const TileCurve& curve : curves) pointers.push_back(&curve);
    double best = 1e300;
    const auto n = chip.tiles;
    for (std::int64_t a = 1; a <= n; ++a) {
      for (std::int64_t b = count > 1 ? 1 : 0; a + b <= n; ++b) {
        for (std::int64_t c = count > 2 ? 1 : 0; a + b + c <= n; ++c) {
          double slowest = cycles_with(kernels[0], chip, a);
          if (count > 1) slowest = std::max(slowest, cycles_with(kernels[1], chip, b));
          if (count > 2) slowest = std::max(slowest, cycles_with(kernels[2], chip, c));
          best = std::min(best, slowest);
          if (count < 3) break;
        }
        if (count < 2) break;
      }
    }
    const auto allocation = allocate_tiles(pointers, chip.tiles);
    ASSERT_EQ(allocation.has_value(), best < 1e300);
    if (!allocation) continue;
    EXPECT_DOUBLE_EQ(allocation->cycles, best);
    std::int64_t used = 0;
    for (std::size_t i = 0; i < count; ++i) {
      used += allocation->tiles[i];
      EXPECT_LE(cycles_with(kernels[i], chip, allocation->tiles[i]), best);
    }
    EXPECT_LE(used, chip.tiles);
  }
}

}  // namespace
}  // namespace braid
