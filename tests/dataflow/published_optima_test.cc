// What DFModel's solver found, or should have, on its published inputs.
#include <gtest/gtest.h>

#include "braid/chip/kernel_mapper.h"
#include "braid/dataflow/dataflow_job.h"
#include "braid/dataflow/dataflow_plan.h"

#include "dataflow/reference_setup.h"

namespace braid {
namespace {

struct Best {
  MappingOutcome outcome;
  double time_s = 0;
};

Best map_as_published(const DataflowSetup& setup) {
  const JobRules rules = published_job_rules(setup);
  const ChipWork work = chip_work(setup, choose_sharding(setup, rules), rules);
  Best best;
  best.outcome = map_kernels(work, setup.chip, setup.rules);
  best.time_s = job_time(setup, best.outcome.cost.time_s, rules).time_s;
  return best;
}

/// GPT3-1T on 1024 SN30 in an 8 x 128 torus.
std::optional<DataflowSetup> on_sn30(double dram_gb, double x_gb, PartitionOverlap overlap) {
  std::optional<DataflowSetup> setup = reference_setup("gpt3_1t_h100_2dtorus_hbm_nvlink");
  if (!setup) return setup;
  setup->chip.tiles = 1280;
  setup->chip.lanes = 32;
  setup->chip.stages = 6;
  setup->chip.clock_hz = 1.25e9;
  setup->chip.sram_bytes = 640.0 * 1024 * 1024;
  setup->chip.dram_bytes_per_s = dram_gb * 1e9;
  setup->chip.dram_bytes = 1.1e12;
  setup->fabric.dimensions[0].bytes_per_s = x_gb * 1e9;
  setup->rules.overlap = overlap;
  setup->job.tile = 1;
  return setup;
}

TEST(PublishedOptima, TrillionOnSn30) {
  const struct {
    double dram_gb, x_gb;
    PartitionOverlap overlap;
    double seconds;
  } cases[] = {{300, 50, PartitionOverlap::none, 142.0230993713273},
               {300, 50, PartitionOverlap::all, 78.99477102558104},
               {3072, 450, PartitionOverlap::none, 78.89001485861618}};
  for (const auto& [dram_gb, x_gb, overlap, seconds] : cases) {
    const auto setup = on_sn30(dram_gb, x_gb, overlap);
    if (!setup) GTEST_SKIP() << "reference data not present";
    const Best best = map_as_published(*setup);
    EXPECT_EQ(best.outcome.status, MappingStatus::optimal);
    EXPECT_NEAR(best.time_s, seconds, 2e-5 * seconds);
    EXPECT_EQ(best.outcome.cost.partitions.size(), 6U);
  }
}

// Everything on the wafer at once: both passes in one partition, nothing overlapped.
TEST(PublishedOptima, TrillionOnWafers) {
  auto setup = on_sn30(3072, 450, PartitionOverlap::none);
  if (!setup) GTEST_SKIP() << "reference data not present";
  setup->chip.tiles = 853776;
  setup->chip.lanes = 4;
  setup->chip.stages = 1;
  setup->chip.clock_hz = 1.1e9;
  setup->chip.sram_bytes = 41.96e9;
  setup->chip.dram_bytes = 96.0 * 1024 * 1024 * 1024;
  setup->rules.separate_passes = false;
  setup->prices.chip_usd = 3025964;
  setup->prices.chip_w = 20298;
  const Best best = map_as_published(*setup);
  EXPECT_EQ(best.outcome.status, MappingStatus::optimal);
  EXPECT_NEAR(best.time_s, 11.546203111268154, 1e-5 * best.time_s);
  EXPECT_EQ(best.outcome.cost.partitions.size(), 1U);
  const MachineCost cost = machine_cost(*setup);
  EXPECT_NEAR(cost.usd, 3105540864, 1e-6 * cost.usd);
  EXPECT_NEAR(cost.watts, 20975680.46, 1e-5 * cost.watts);
}

// Dividing first, for fewest bytes, and mapping then is not the best of both, with the published
// charges.
TEST(PublishedOptima, DividingAndMappingTogetherIsFaster) {
  const struct {
    double dram_gb, x_gb;
    PartitionOverlap overlap;
    double seconds;
  } cases[] = {{300, 50, PartitionOverlap::none, 124.411},
               {300, 50, PartitionOverlap::all, 75.330},
               {3072, 450, PartitionOverlap::none, 77.090}};
  for (const auto& [dram_gb, x_gb, overlap, seconds] : cases) {
    const auto setup = on_sn30(dram_gb, x_gb, overlap);
    if (!setup) GTEST_SKIP() << "reference data not present";
    DataflowPlanRules rules = published_plan_rules(*setup);
    rules.kernel_by_kernel = false;
    rules.job.joint_sharding = true;
    const DataflowPlan plan = plan_dataflow(*setup, rules);
    EXPECT_EQ(plan.outcome.status, MappingStatus::optimal);
    EXPECT_NEAR(plan.time.time_s, seconds, 0.001);
    EXPECT_LT(plan.boxes, 100);
  }
  const auto ring = reference_setup("gpt3_175b_sn10");
  ASSERT_TRUE(ring);
  DataflowPlanRules rules = published_plan_rules(*ring);
  rules.job.joint_sharding = true;
  EXPECT_NEAR(plan_dataflow(*ring, rules).time.time_s, 852.551, 0.001);
}

// 1020.5 s is the published optimum with the partitions of all products given; the search is free
// to place them.
TEST(PublishedOptima, SambaNovaRing) {
  const auto setup = reference_setup("gpt3_175b_sn10");
  if (!setup) GTEST_SKIP() << "reference data not present";
  const Best best = map_as_published(*setup);
  EXPECT_EQ(best.outcome.status, MappingStatus::optimal);
  EXPECT_NEAR(best.time_s, 884.470, 0.001);
  EXPECT_EQ(best.outcome.cost.partitions.size(), 2U);
}

// 801.0 s is the published result, from a solver that was interrupted.
TEST(PublishedOptima, SambaNovaTorus) {
  auto setup = reference_setup("gpt3_175b_sn10");
  if (!setup) GTEST_SKIP() << "reference data not present";
  setup->fabric.dimensions = {{FabricShape::ring, 4, 50e9, FabricRole::tensor},
                              {FabricShape::ring, 2, 50e9, FabricRole::data}};
  const Best best = map_as_published(*setup);
  EXPECT_EQ(best.outcome.status, MappingStatus::optimal);
  EXPECT_NEAR(best.time_s, 762.947, 0.001);
  EXPECT_EQ(best.outcome.cost.partitions.size(), 3U);
  EXPECT_NEAR(4909.147625881573 / best.time_s, 6.43, 0.005);
}

}  // namespace
}  // namespace braid
