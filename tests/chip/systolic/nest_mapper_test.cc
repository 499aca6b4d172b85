#include "braid/chip/systolic/nest_mapper.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "braid/base/infinity.h"
#include "braid/chip/systolic/nest_bound.h"

#include "chip/systolic/nest_oracle.h"

namespace braid {
namespace {

std::int64_t drawn(std::mt19937& random, std::int64_t first, std::int64_t last) {
  return first + static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(last - first + 1));
}

LoopNest tiny_nest(std::mt19937& random, std::int64_t volume) {
  LoopNest nest;
  do {
    nest = gemm_nest(drawn(random, 1, 6), drawn(random, 1, 6), drawn(random, 1, 6),
                     drawn(random, 1, 6) == 1 ? 2 : 1);
  } while (nest_macs(nest) > static_cast<double>(volume));
  if (drawn(random, 1, 4) == 1) {
    nest.window = {.used = true,
                   .operand = drawn(random, 0, 1) == 0 ? NestOperand::first : NestOperand::output,
                   .positions = NestDim::m,
                   .slope = 1.0 / static_cast<double>(drawn(random, 1, 4)),
                   .offset = static_cast<double>(drawn(random, 0, 2)) / 2};
    if (nest.window.operand == NestOperand::first && drawn(random, 0, 1) == 0) {
      nest.window.positions = NestDim::k;
    }
  }
  if (drawn(random, 1, 4) == 1) nest.on_chip = static_cast<std::uint8_t>(drawn(random, 1, 6));
  return nest;
}

SystolicMachine tiny_machine(std::mt19937& random) {
  SystolicMachine machine;
  machine.cores = drawn(random, 1, 4);
  machine.array = {.rows = drawn(random, 1, 2),
                   .columns = drawn(random, 1, 3),
                   .unit_words = drawn(random, 1, 3),
                   .words_per_cycle = static_cast<double>(drawn(random, 0, 5)),
                   .flows = static_cast<std::uint8_t>(drawn(random, 1, 15))};
  machine.buffers = {.l2_words = static_cast<double>(drawn(random, 2, 30)),
                     .l2_per_operand = drawn(random, 0, 1) == 0,
                     .global_words = static_cast<double>(drawn(random, 4, 80)),
                     .global_words_per_cycle = static_cast<double>(drawn(random, 0, 4)),
                     .hbm_words_per_cycle = static_cast<double>(drawn(random, 0, 8)) / 4};
  return machine;
}

TEST(NestMapper, FindsTheFewestCyclesOfAllWalkedMappings) {
  std::mt19937 random(24);
  int feasible = 0;
  for (int trial = 0; trial < 24; ++trial) {
    const LoopNest nest = tiny_nest(random, 12);
    const SystolicMachine machine = tiny_machine(random);
    const MappedNest mapped = map_nest(nest, machine);
    const double fewest = fewest_cycles(nest, machine);
    const bool found = mapped.status == NestStatus::optimal;
    ASSERT_EQ(found, fewest < kInfinity) << trial;
    if (found) {
      ++feasible;
      ASSERT_NEAR(mapped.cost.cycles, fewest, 1e-9 * fewest)
          << trial << ": " << nest.batch << " x " << nest.m << " x " << nest.n << " x " << nest.k;
      EXPECT_LE(mapped.bound_cycles, fewest * (1 + 1e-12));
    }
  }
  EXPECT_GT(feasible, 10);
}

/// Loops that keep what a mapping says in place.
LoopOrders orders_of(const NestMapping& mapping) {
  LoopOrders orders;
  const auto innermost = [](auto& order, NestOperand stays) {
    const auto at = std::find(order.begin(), order.end(), static_cast<int>(stays));
    std::rotate(at, at + 1, order.end());
  };
  innermost(orders.steps, mapping.global_stays);
  innermost(orders.rounds, mapping.l2_stays);
  return orders;
}

TEST(NestMapper, NeedsBuffersForOneTile) {
  SystolicMachine machine{.cores = 4, .array = {.rows = 4, .columns = 2}, .buffers = {}};
  machine.buffers.global_words = 1000;
  // Of the smallest tile, 4 × 2 words stay, beside 4 and 2 of the streamed operands.
  machine.buffers.l2_words = 13;
  EXPECT_EQ(map_nest(gemm_nest(9, 9, 9), machine).status, NestStatus::infeasible);
  EXPECT_EQ(map_nest(gemm_nest(9, 9, 9), machine).cost.cycles, kInfinity);
  machine.buffers.l2_words = 14;
  const MappedNest single = map_nest(gemm_nest(9, 9, 9), machine);
  EXPECT_EQ(single.status, NestStatus::optimal);
  EXPECT_FALSE(single.mapping.l2_doubled);
  machine.buffers.global_words = 13;
  EXPECT_EQ(map_nest(gemm_nest(9, 9, 9), machine).status, NestStatus::infeasible);
}

TEST(NestMapper, WalkingItsMappingCountsTheSame) {
  std::mt19937 random(7);
  int walked = 0;
  for (int trial = 0; trial < 400; ++trial) {
    const LoopNest nest = tiny_nest(random, 216);
    const SystolicMachine machine = tiny_machine(random);
    const MappedNest mapped = map_nest(nest, machine);
    if (mapped.status != NestStatus::optimal) continue;
    ++walked;
    const std::optional<NestCost> cost =
        walked_cost(nest, machine, mapped.mapping, orders_of(mapped.mapping));
    ASSERT_TRUE(cost.has_value()) << trial;
    EXPECT_DOUBLE_EQ(cost->array_cycles, mapped.cost.array_cycles) << trial;
    EXPECT_DOUBLE_EQ(cost->l2_cycles, mapped.cost.l2_cycles) << trial;
    EXPECT_LE(cost->global_words, mapped.cost.global_words * (1 + 1e-12)) << trial;
    EXPECT_LE(cost->hbm_words, mapped.cost.hbm_words * (1 + 1e-12)) << trial;
    EXPECT_DOUBLE_EQ(cost->cycles, mapped.cost.cycles) << trial;
  }
  EXPECT_GT(walked, 200);
}

}  // namespace
}  // namespace braid
