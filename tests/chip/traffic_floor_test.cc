#include "braid/chip/traffic_floor.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "braid/chip/covering_program.h"
#include "braid/chip/kernel_graph.h"
#include "braid/chip/kernel_mapper.h"
#include "braid/chip/set_order.h"

#include "chip/random_work.h"

namespace braid {
namespace {

using Set = std::vector<std::uint32_t>;

/// The least cost of disjoint columns that cover all rows, by trying all.
double least_cover(const std::vector<std::pair<unsigned, double>>& columns, unsigned covered,
                   unsigned all) {
  if (covered == all) return 0;
  const unsigned lowest = ~covered & (covered + 1);
  double best = std::numeric_limits<double>::infinity();
  for (const auto& [rows, cost] : columns) {
    if ((rows & lowest) == 0 || (rows & covered) != 0) continue;
    best = std::min(best, cost + least_cover(columns, covered | rows, all));
  }
  return best;
}

TEST(CoveringProgram, PricesSatisfyTheDualAndReachThePrimal) {
  std::mt19937_64 dice(1);
  int tight = 0;
  for (int round = 0; round < 500; ++round) {
    const std::size_t rows = dice() % 9 + 1;
    CoveringProgram program(rows);
    std::vector<std::pair<unsigned, double>> columns;
    for (std::size_t c = 0; c < rows + 40; ++c) {
      const unsigned set = c < rows ? 1U << c : static_cast<unsigned>(dice() % (1U << rows));
      if (set == 0) continue;
      Set members;
      for (std::uint32_t i = 0; i < rows; ++i) {
        if ((set >> i & 1U) != 0) members.push_back(i);
      }
      const auto cost = static_cast<double>(dice() % 100 + (c < rows ? 50 : 0));
      program.add_column(members, cost);
      columns.emplace_back(set, cost);
    }
    const CoveringProgram::Solution solution = program.solve(1'000'000);
    for (std::size_t c = 0; c < program.columns(); ++c) {
      double sum = 0;
      for (const std::uint32_t row : program.column(c)) sum += solution.prices[row];
      EXPECT_LE(sum, program.cost(c) + 1e-9);
    }
    const double total = std::accumulate(solution.prices.begin(), solution.prices.end(), 0.0);
    double primal = 0;
    for (std::size_t u = 0; u < solution.used.size(); ++u) {
      primal += solution.shares[u] * program.cost(solution.used[u]);
    }
    // Right-hand sides are up to 1e-4 more than 1.
    double sizes = 0;
    for (const double price : solution.prices) sizes += std::abs(price);
    EXPECT_NEAR(total, primal, 1e-4 * sizes + 1e-6);
    const double whole = least_cover(columns, 0, (1U << rows) - 1);
    EXPECT_LE(total, whole + 1e-6);
    tight += total > whole - 1e-4 ? 1 : 0;
    // However early it stops.
    const CoveringProgram::Solution early = program.solve(dice() % 500);
    for (std::size_t c = 0; c < program.columns(); ++c) {
      double sum = 0;
      for (const std::uint32_t row : program.column(c)) sum += early.prices[row];
      EXPECT_LE(sum, program.cost(c) + 1e-9);
    }
  }
  EXPECT_GE(tight, 200);
}

/// Visits all sets that fit between two downsets, with what they read and write.
template <typename Visit>
void all_partitions(const MapperTables& tables, const Visit& visit) {
  const auto count = static_cast<unsigned>(tables.kernels.size());
  const auto in = [](unsigned set, std::uint32_t kernel) { return (set >> kernel & 1U) != 0; };
  const auto is_downset = [&](unsigned set) {
    for (std::uint32_t k = 0; k < count; ++k) {
      for (const MapperTables::Tensor& input : tables.kernels[k].inputs) {
        if (in(set, k) && !in(set, input.other)) return false;
      }
    }
    return true;
  };
  PartitionSums sums(tables);
  for (unsigned after = 1; after < 1U << count; ++after) {
    if (!is_downset(after)) continue;
    for (unsigned part = after; part != 0; part = (part - 1) & after) {
      const unsigned before = after & ~part;
      if (!is_downset(before)) continue;
      Bitset set(count);
      for (std::uint32_t k = 0; k < count; ++k) {
        if (in(before, k)) set.set(k);
      }
      sums.begin(set);
      bool accepted = true;
      for (const std::uint32_t kernel : tables.order) {
        if (!in(part, kernel)) continue;
        accepted = accepted && sums.accepts(kernel);
        sums.add(kernel);
      }
      const double time_s = sums.time_s(std::numeric_limits<double>::infinity());
      if (!accepted || time_s == PartitionSums::kImpossible) continue;
      visit(before, part, sums.sums().reads + sums.sums().writes);
    }
  }
}

TEST(TrafficFloors, NoPartitionMovesLess) {
  std::mt19937_64 dice(2);
  int raised = 0, reached = 0, rounds = 0;
  for (int round = 0; round < 400; ++round) {
    const ChipWork work = random_work(dice, dice() % 7 + 2);
    DataflowChip chip = random_chip(dice);
    chip.dram_bytes = 1e12;
    MappingRules rules;
    rules.whole_tiles = dice() % 4 == 0;
    rules.weight_traffic = dice() % 2 == 0;
    rules.share_tensors = dice() % 2 == 0;
    rules.separate_passes = dice() % 2 == 0;
    const MapperTables tables(work, chip, rules);
    const TrafficFloors floors = traffic_floors(tables);
    ASSERT_EQ(floors.bytes.size(), work.kernels.size());
    const auto count = static_cast<unsigned>(work.kernels.size());
    std::vector<double> least(std::size_t{1} << count, 1e300);
    least[0] = 0;
    // Larger downsets come later: what is visited behind `before` is settled by then.
    all_partitions(tables, [&](unsigned before, unsigned part, double bytes) {
      double sum = 0;
      for (std::uint32_t k = 0; k < count; ++k) sum += (part >> k & 1U) != 0 ? floors.bytes[k] : 0;
      EXPECT_LE(sum, bytes + 1e-6) << "round " << round;
      least[before | part] = std::min(least[before | part], least[before] + bytes);
    });
    const double total = std::accumulate(floors.bytes.begin(), floors.bytes.end(), 0.0);
    EXPECT_LE(total, least.back() + 1e-6);
    ++rounds;
    raised += total > 1 ? 1 : 0;
    reached += total > least.back() - 1e-4 * least.back() - 1e-6 ? 1 : 0;
    Set sorted = floors.order;
    std::sort(sorted.begin(), sorted.end());
    for (std::uint32_t k = 0; k < count; ++k) EXPECT_EQ(sorted[k], k);
  }
  EXPECT_GE(raised, rounds / 4);
  EXPECT_GE(reached, rounds / 2);
}

TEST(SetOrder, AddsWhatCanRunInOneGo) {
  // 0 -> 1 -> 2, 3 -> 4 -> 5, 0 -> 4, 3 -> 1.
  ChipWork work;
  work.kernels.resize(6);
  for (ChipKernel& kernel : work.kernels) kernel.flops = 1;
  for (const auto& [from, to] : {std::pair{0, 1}, {1, 2}, {3, 4}, {4, 5}, {0, 4}, {3, 1}}) {
    ChipTensor tensor;
    tensor.from = from;
    tensor.to = to;
    work.tensors.push_back(tensor);
  }
  DataflowChip chip;
  chip.clock_hz = 1e9;
  MappingRules rules;
  rules.whole_tiles = false;
  const MapperTables tables(work, chip, rules);
  SetOrder sets(tables);
  EXPECT_EQ(sets.never_in_cycle(std::vector<Set>{{0, 1}, {3, 4}, {2}}),
            (std::vector<bool>{false, false, true}));
  EXPECT_TRUE(sets.add(Set{0, 1}));
  EXPECT_FALSE(sets.add(Set{3, 4}));
  EXPECT_TRUE(sets.add(Set{4, 5}));
  EXPECT_TRUE(sets.behind()[3].test(2));
  EXPECT_FALSE(sets.behind()[2].test(3));
  const Set order = sets.order();
  ASSERT_EQ(order.size(), 6U);
  const auto place = [&](std::uint32_t k) {
    return std::find(order.begin(), order.end(), k) - order.begin();
  };
  EXPECT_EQ(place(1), place(0) + 1);
  EXPECT_EQ(place(5), place(4) + 1);
  EXPECT_LT(place(3), place(0));
}

TEST(TrafficFloors, GiveUpOnWhatIsTooMuch) {
  std::mt19937_64 dice(3);
  const ChipWork work = random_work(dice, 30);
  DataflowChip chip = random_chip(dice);
  chip.sram_bytes = 1e9;
  const MapperTables tables(work, chip, dfmodel_rules(PartitionOverlap::none));
  EXPECT_TRUE(traffic_floors(tables, {.sets = 1000}).bytes.empty());
  EXPECT_TRUE(traffic_floors(tables, {.columns = 100}).bytes.empty());
  EXPECT_TRUE(traffic_floors(tables, {.kernels = 29}).bytes.empty());
}

/// Kernels in rows of ten, each reading one to three of the row before; SRAM for two or so.
ChipWork wide_work(std::size_t rows) {
  std::mt19937_64 dice(4);
  ChipWork work = random_work(dice, 10 * rows);
  work.tensors.clear();
  for (ChipKernel& kernel : work.kernels) kernel.backward = false;
  for (std::size_t to = 10; to < work.kernels.size(); ++to) {
    std::vector<bool> read(10, false);
    for (std::uint64_t reads = dice() % 3 + 1; reads > 0; --reads) read[dice() % 10] = true;
    for (std::size_t i = 0; i < 10; ++i) {
      if (!read[i]) continue;
      ChipTensor tensor;
      tensor.from = static_cast<std::int32_t>(to / 10 * 10 - 10 + i);
      tensor.to = static_cast<std::int32_t>(to);
      tensor.tile_bytes = static_cast<double>(tensor.from * 37 % 30 + 1);
      tensor.bytes = tensor.tile_bytes * static_cast<double>(tensor.from % 4 + 1);
      work.tensors.push_back(tensor);
    }
  }
  return work;
}

TEST(KernelMapper, ProvesWideGraphsOnSmallSramToAPercent) {
  const ChipWork work = wide_work(8);
  std::mt19937_64 dice(5);
  DataflowChip chip = random_chip(dice);
  chip.tiles = 16;
  chip.lanes = 4;
  chip.stages = 2;
  chip.sram_bytes = 400;
  chip.dram_bytes = 1e12;
  chip.dram_bytes_per_s = 10e9;
  const MappingRules rules = dfmodel_rules(PartitionOverlap::none);
  const MappingOutcome outcome = map_kernels(work, chip, rules, {1'000'000, 20'000});
  EXPECT_LE(outcome.cost.time_s, outcome.lower_bound_s * 1.01);
  // What is computed, moved by kernels and sent alone is far from that.
  EXPECT_LT(work_bound_s(work, chip, rules), 0.8 * outcome.lower_bound_s);
}

}  // namespace
}  // namespace braid
