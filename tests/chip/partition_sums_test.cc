#include "braid/chip/partition_sums.h"

#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "chip/random_work.h"

namespace braid {
namespace {

DataflowChip small_chip() {
  DataflowChip chip;
  chip.tiles = 12;
  chip.lanes = 4;
  chip.stages = 4;
  chip.clock_hz = 1e9;
  chip.sram_bytes = 900;
  chip.dram_bytes = 4000;
  chip.dram_bytes_per_s = 1e9;
  return chip;
}

/// Adds the next kernels of the order and compares with an object that began there.
void expect_same_behind(const MapperTables& tables, std::size_t from, const Bitset& before,
                        PartitionSums& sums) {
  PartitionSums fresh(tables);
  fresh.begin(before);
  EXPECT_EQ(sums.size(), 0U);
  for (std::size_t i = from; i < tables.order.size(); ++i) {
    const std::uint32_t kernel = tables.order[i];
    ASSERT_EQ(sums.accepts(kernel), fresh.accepts(kernel));
    if (!fresh.accepts(kernel)) break;
    sums.add(kernel);
    fresh.add(kernel);
    EXPECT_DOUBLE_EQ(sums.cut_bytes(), fresh.cut_bytes());
    EXPECT_DOUBLE_EQ(sums.sums().reads, fresh.sums().reads);
    EXPECT_DOUBLE_EQ(sums.sums().sram_bytes, fresh.sums().sram_bytes);
    EXPECT_EQ(sums.time_s(kInfinity), fresh.time_s(kInfinity));
  }
}

// Wherever a partition begins, what was looked at before it leaves no trace.
TEST(PartitionSums, AreTheSameHoweverTheirBeginningIsReached) {
  std::mt19937_64 dice(3);
  for (int trial = 0; trial < 300; ++trial) {
    MappingRules rules;
    rules.share_tensors = trial % 2 == 0;
    const ChipWork work = random_work(dice, 2 + dice() % 9);
    const MapperTables tables(work, small_chip(), rules);
    PartitionSums moved(tables), begun(tables);
    moved.begin(Bitset(tables.kernels.size()));
    Bitset before(tables.kernels.size());
    for (std::size_t from = 0; from < tables.order.size(); ++from) {
      expect_same_behind(tables, from, before, moved);
      if (dice() % 2 == 0) {
        begun.begin(before);
        expect_same_behind(tables, from, before, begun);
      }
      if (dice() % 4 == 0) begun.begin(Bitset(tables.kernels.size()));
      before.set(tables.order[from]);
      moved.move_behind(tables.order[from]);
    }
  }
}

}  // namespace
}  // namespace braid
