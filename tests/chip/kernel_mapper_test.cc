#include "braid/chip/kernel_mapper.h"

#include <random>

#include <gtest/gtest.h>

#include "chip/mapping_oracle.h"
#include "chip/random_work.h"

namespace braid {
namespace {

MappingRules random_rules(std::mt19937_64& dice) {
  MappingRules rules;
  rules.overlap = static_cast<PartitionOverlap>(dice() % 3);
  rules.whole_tiles = dice() % 4 == 0;
  rules.weight_traffic = dice() % 2 == 0;
  rules.share_tensors = dice() % 2 == 0;
  rules.sram_limit = dice() % 5 != 0;
  rules.separate_passes = dice() % 4 != 0;
  return rules;
}

void compare_with_oracle(std::uint64_t seed, int rounds, std::size_t most_kernels) {
  std::mt19937_64 dice(seed);
  int infeasible = 0;
  for (int round = 0; round < rounds; ++round) {
    const ChipWork work = random_work(dice, dice() % most_kernels + 1);
    const DataflowChip chip = random_chip(dice);
    const MappingRules rules = random_rules(dice);
    const double best = MappingOracle(work, chip, rules).best();
    const MappingOutcome outcome = map_kernels(work, chip, rules, {20000, 20000});
    if (best >= 1e300) {
      ++infeasible;
      EXPECT_EQ(outcome.status, MappingStatus::infeasible) << "round " << round;
      continue;
    }
    ASSERT_EQ(outcome.status, MappingStatus::optimal) << "round " << round;
    ASSERT_NEAR(outcome.cost.time_s, best, 1e-8 * best) << "round " << round;
    EXPECT_FALSE(outcome.cost.violation);
    EXPECT_EQ(outcome.lower_bound_s, outcome.cost.time_s);
  }
  EXPECT_LT(infeasible, rounds / 2);
}

TEST(KernelMapper, AgreesWithTryingEverythingOnSmallGraphs) { compare_with_oracle(1, 9000, 4); }
TEST(KernelMapper, AgreesWithTryingEverythingOnGraphsOfSeven) { compare_with_oracle(2, 1500, 7); }

TEST(KernelMapper, IsNeverSlowerThanKernelByKernelAndKeepsItsBoundOnABudget) {
  std::mt19937_64 dice(5);
  for (int round = 0; round < 20; ++round) {
    const ChipWork work = random_work(dice, 40);
    DataflowChip chip = random_chip(dice);
    chip.dram_bytes = 1e12;
    const MappingRules rules = dfmodel_rules(static_cast<PartitionOverlap>(dice() % 3));
    const MappingOutcome outcome = map_kernels(work, chip, rules, {3000, 1000});
    ASSERT_FALSE(outcome.mapping.partition_of.empty());
    EXPECT_LE(outcome.lower_bound_s, outcome.cost.time_s);
    EXPECT_GT(outcome.lower_bound_s, 0);
    const MappingCost alone = evaluate_mapping(work, chip, kernel_by_kernel(work), rules);
    EXPECT_LE(outcome.cost.time_s, alone.time_s * (1 + 1e-9));
    const MappingOutcome again = map_kernels(work, chip, rules, {3000, 1000});
    EXPECT_EQ(again.mapping, outcome.mapping);
    EXPECT_EQ(again.lower_bound_s, outcome.lower_bound_s);
  }
}

/// Where nothing that was tried fits DRAM, no more is looked at than asked for.
TEST(KernelMapper, LooksAtLittleWhereNothingFits) {
  std::mt19937_64 dice(7);
  ChipWork work = random_work(dice, 40);
  const DataflowChip chip = random_chip(dice);
  work.resident_bytes = 2 * (chip.dram_bytes + chip.spill_bytes);
  work.tensors.clear();  // All kernels side by side: every set of them is a downset.
  MappingRules rules;
  rules.whole_tiles = rules.sram_limit = false;
  MapperBudget budget{20'000, 40'000};
  const MappingOutcome all = map_kernels(work, chip, rules, budget);
  budget.unfit_partitions = 1'000;
  const MappingOutcome few = map_kernels(work, chip, rules, budget);
  EXPECT_EQ(all.status, MappingStatus::exhausted);
  EXPECT_EQ(few.status, MappingStatus::exhausted);
  EXPECT_GT(all.partitions, 20'000);
  EXPECT_LT(few.partitions, 4'000);
}

// More of anything never makes the best mapping slower.
TEST(KernelMapper, IsMonotone) {
  std::mt19937_64 dice(6);
  for (int round = 0; round < 100; ++round) {
    const ChipWork work = random_work(dice, 6);
    DataflowChip chip = random_chip(dice);
    chip.dram_bytes = 1e12;
    MappingRules rules = random_rules(dice);
    const double time_s = map_kernels(work, chip, rules).cost.time_s;
    DataflowChip larger = chip;
    larger.sram_bytes *= 1.5;
    EXPECT_LE(map_kernels(work, larger, rules).cost.time_s, time_s * (1 + 1e-8));
    DataflowChip faster = chip;
    faster.dram_bytes_per_s *= 2;
    EXPECT_LE(map_kernels(work, faster, rules).cost.time_s, time_s * (1 + 1e-8));
    rules.overlap = PartitionOverlap::all;
    EXPECT_LE(map_kernels(work, chip, rules).cost.time_s, time_s * (1 + 1e-8));
  }
}

}  // namespace
}  // namespace braid
