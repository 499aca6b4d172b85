#include "braid/dataflow/joint_sharding.h"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "braid/base/infinity.h"
#include "braid/dataflow/dataflow_job.h"
#include "braid/dataflow/sharding_tables.h"

#include "chip/mapping_oracle.h"
#include "dataflow/random_kernels.h"

namespace braid {
namespace {

/// A layer of few kernels on a chip that holds some of them.
DataflowSetup random_layer(std::mt19937_64& dice, std::size_t kernels, std::size_t axes) {
  DataflowSetup setup;
  setup.graph = random_kernels(dice, kernels);
  const std::size_t first_backward = dice() % 3 == 0 ? dice() % (kernels + 1) : kernels;
  for (std::size_t i = first_backward; i < kernels; ++i) setup.graph.kernels[i].backward = true;
  for (Kernel& kernel : setup.graph.kernels) {
    if (kernel.weights && dice() % 3 == 0) {
      kernel.messages.push_back({KernelTransfer::all_reduce_per_batch, 1000});
    }
  }
  setup.fabric = random_fabric(dice, axes);
  for (const FabricDimension& dimension : setup.fabric.dimensions) setup.chips *= dimension.size;
  setup.chip.tiles = static_cast<std::int64_t>(dice() % 24 + 1);
  setup.chip.lanes = static_cast<std::int64_t>(dice() % 32 + 1);
  setup.chip.stages = static_cast<std::int64_t>(dice() % 16 + 1);
  setup.chip.clock_hz = 1e9 * static_cast<double>(dice() % 20 + 1);
  setup.chip.sram_bytes = 1e4 * static_cast<double>(1 << dice() % 12);
  setup.chip.dram_bytes = 1e6 * static_cast<double>(1 << dice() % 9);
  setup.chip.dram_bytes_per_s = 1e9 * static_cast<double>(dice() % 50 + 1);
  if (dice() % 4 == 0) {
    setup.chip.spill_bytes = setup.chip.dram_bytes / 2;
    setup.chip.spill_bytes_per_s = setup.chip.dram_bytes_per_s / 4;
  }
  setup.job.layers = static_cast<std::int64_t>(dice() % 3 + 1);
  setup.job.global_batch = 8;
  setup.job.tile = static_cast<std::int64_t>(dice() % 3);
  return setup;
}

DataflowPlanRules random_plan_rules(std::mt19937_64& dice) {
  DataflowPlanRules rules;
  rules.mapping.overlap = static_cast<PartitionOverlap>(dice() % 3);
  rules.mapping.whole_tiles = dice() % 2 == 0;
  rules.mapping.weight_traffic = dice() % 2 == 0;
  rules.mapping.share_tensors = dice() % 2 == 0;
  rules.mapping.sram_limit = dice() % 8 != 0;
  rules.mapping.separate_passes = dice() % 2 == 0;
  rules.kernel_by_kernel = dice() % 4 == 0;
  rules.job.training_state = dice() % 2 == 0;
  rules.job.plain_pipeline = dice() % 2 == 0;
  rules.job.collectives.latency = dice() % 2 == 0;
  return rules;
}

std::vector<std::vector<KernelDims>> all_options_of(const DataflowSetup& setup,
                                                    const DataflowPlanRules& rules) {
  std::vector<std::vector<KernelDims>> options;
  for (const Kernel& kernel : setup.graph.kernels) {
    options.push_back(
        option_dims(kernel, rules.job.grid_sharding, shard_axes(setup.fabric).size()));
  }
  return options;
}

double least_with(const DataflowSetup& setup, const DataflowPlanRules& rules,
                  const Sharding& dims) {
  const ChipWork work = chip_work(setup, dims, rules.job);
  if (!rules.kernel_by_kernel) {
    const double time_s = MappingOracle(work, setup.chip, rules.mapping).best();
    return time_s >= 1e300 ? kInfinity : time_s;
  }
  const MappingCost cost =
      evaluate_mapping(work, setup.chip, kernel_by_kernel(work), rules.mapping);
  return cost.violation ? kInfinity : cost.time_s;
}

/// The least time over all shardings and all mappings of each.
double least_over_all(const DataflowSetup& setup, const DataflowPlanRules& rules) {
  const std::vector<std::vector<KernelDims>> options = all_options_of(setup, rules);
  std::vector<std::size_t> choice(options.size(), 0);
  Sharding dims(options.size());
  double least = kInfinity;
  for (bool more = true; more;) {
    for (std::size_t i = 0; i < dims.size(); ++i) dims[i] = options[i][choice[i]];
    least = std::min(least, least_with(setup, rules, dims));
    more = false;
    for (std::size_t i = 0; i < choice.size() && !more; ++i) {
      more = ++choice[i] < options[i].size();
      if (!more) choice[i] = 0;
    }
  }
  return least;
}

std::vector<Sharding> two_shardings(const DataflowSetup& setup, JobRules job) {
  job.time_sharding = true;
  std::vector<Sharding> first = {choose_sharding(setup, job)};
  job.time_sharding = job.grid_sharding = false;
  first.push_back(choose_sharding(setup, job));
  return first;
}

double time_of(const ShardedMapping& mapped) {
  return mapped.outcome.mapping.partition_of.empty() ? kInfinity : mapped.outcome.cost.time_s;
}

void check_against_all(const DataflowSetup& setup, const DataflowPlanRules& rules, int round,
                       int& better) {
  const double least = least_over_all(setup, rules);
  const std::vector<Sharding> first = two_shardings(setup, rules.job);
  const ShardedMapping mapped = divide_and_map(setup, rules, first);
  ASSERT_LE(sharding_bound_s(setup, rules, least_messages_s(setup, rules.job)), least) << round;
  if (least == kInfinity) {
    ASSERT_EQ(mapped.outcome.status, MappingStatus::infeasible) << round;
    return;
  }
  ASSERT_EQ(mapped.outcome.status, MappingStatus::optimal) << round;
  ASSERT_NEAR(time_of(mapped), least, 3e-9 * least) << round;
  EXPECT_EQ(mapped.outcome.lower_bound_s, mapped.outcome.cost.time_s);
  EXPECT_EQ(mapped.work, chip_work(setup, mapped.dims, rules.job));
  double fixed = kInfinity;
  for (const Sharding& dims : first) fixed = std::min(fixed, least_with(setup, rules, dims));
  better += least < 0.99 * fixed ? 1 : 0;
  // Nothing that takes as long as the least is looked for.
  const ShardedMapping none = divide_and_map(setup, rules, first, 0.99 * least);
  EXPECT_EQ(none.outcome.status, MappingStatus::exhausted) << round;
  EXPECT_TRUE(none.outcome.mapping.partition_of.empty());
}

TEST(JointSharding, AgreesWithTryingAllShardingsAndMappings) {
  std::mt19937_64 dice(41);
  int better = 0;
  for (int round = 0; round < 200 && !::testing::Test::HasFatalFailure(); ++round) {
    const DataflowSetup setup = random_layer(dice, 1 + dice() % 5, 1);
    check_against_all(setup, random_plan_rules(dice), round, better);
  }
  // Where neither least time on the network nor fewest bytes is best, by a hundredth or more.
  EXPECT_GT(better, 20);
}

TEST(JointSharding, AgreesWithTryingAllShardingsByEachDimension) {
  std::mt19937_64 dice(43);
  int better = 0;
  for (int round = 0; round < 60 && !::testing::Test::HasFatalFailure(); ++round) {
    const DataflowSetup setup = random_layer(dice, 1 + dice() % 2, 2);
    DataflowPlanRules rules = random_plan_rules(dice);
    rules.job.grid_sharding = true;
    check_against_all(setup, rules, round, better);
  }
}

// Never slower than what it begins with; a budget that is used up leaves a bound.
TEST(JointSharding, BoundsWhatABudgetLeavesOut) {
  std::mt19937_64 dice(47);
  int with_gap = 0;
  for (int round = 0; round < 40; ++round) {
    const DataflowSetup setup = random_layer(dice, 9, 1);
    DataflowPlanRules rules = random_plan_rules(dice);
    Sharding dims;
    for (const std::vector<KernelDims>& options : all_options_of(setup, rules)) {
      dims.push_back(options[dice() % options.size()]);
    }
    const ShardedMapping best =
        divide_and_map(setup, rules, std::vector<Sharding>{dims}, kInfinity);
    ASSERT_EQ(best.outcome.status == MappingStatus::optimal, time_of(best) < kInfinity) << round;
    rules.job.joint_sharding = false;
    EXPECT_LE(time_of(best),
              time_of(divide_and_map(setup, rules, std::vector<Sharding>{dims}, kInfinity)));
    rules.job.joint_sharding = true;
    rules.budget.partitions = 2000;
    const ShardedMapping some =
        divide_and_map(setup, rules, std::vector<Sharding>{dims}, kInfinity);
    if (time_of(some) == kInfinity) continue;
    EXPECT_GE(time_of(some), time_of(best) * (1 - 1e-9)) << round;
    EXPECT_LE(some.outcome.lower_bound_s, time_of(best) * (1 + 1e-9)) << round;
    with_gap += some.outcome.status == MappingStatus::feasible ? 1 : 0;
  }
  EXPECT_GT(with_gap, 0);
}

TEST(JointSharding, MoreNeverHurtsAndRelabellingChangesNothing) {
  std::mt19937_64 dice(53);
  for (int round = 0; round < 30; ++round) {
    const DataflowSetup setup = random_layer(dice, 2 + dice() % 7, 1);
    const DataflowPlanRules rules = random_plan_rules(dice);
    const auto time_s = [&](const DataflowSetup& of) {
      return time_of(divide_and_map(of, rules, two_shardings(of, rules.job)));
    };
    const double before_s = time_s(setup);
    DataflowSetup more = setup;
    more.chip.sram_bytes *= 2;
    EXPECT_LE(time_s(more), before_s * (1 + 1e-8)) << round;
    more = setup;
    more.chip.dram_bytes *= 2;
    EXPECT_LE(time_s(more), before_s * (1 + 1e-8)) << round;
    more = setup;
    for (FabricDimension& dimension : more.fabric.dimensions) dimension.bytes_per_s *= 3;
    EXPECT_LE(time_s(more), before_s * (1 + 1e-8)) << round;
    // One after the other, kernels of a level follow their numbers.
    if (rules.kernel_by_kernel) continue;
    DataflowSetup turned = setup;
    std::reverse(turned.graph.kernels.begin(), turned.graph.kernels.end());
    const auto last = static_cast<std::int32_t>(setup.graph.kernels.size()) - 1;
    for (KernelTensor& tensor : turned.graph.tensors) {
      tensor = {last - tensor.from, last - tensor.to};
    }
    const double turned_s = time_s(turned);
    if (before_s == kInfinity) {
      EXPECT_EQ(turned_s, kInfinity) << round;
    } else {
      EXPECT_NEAR(turned_s, before_s, 1e-8 * before_s) << round;
    }
  }
}

// With one option for each kernel a box is that sharding; with all it has no more than any.
TEST(JointSharding, BoxesHaveTheLeastOfTheirShardings) {
  std::mt19937_64 dice(59);
  for (int round = 0; round < 100; ++round) {
    const DataflowSetup setup = random_layer(dice, 1 + dice() % 6, 1);
    const DataflowPlanRules rules = random_plan_rules(dice);
    const ShardingTables tables(setup, rules.job, rules.mapping);
    ShardingBox one, all;
    Sharding dims;
    for (const auto& options : tables.options) {
      const std::size_t option = dice() % options.size();
      one.push_back(std::uint64_t{1} << option);
      all.push_back((std::uint64_t{1} << options.size()) - 1);
      dims.push_back(options[option].dims);
    }
    const BoxWork exact = box_work(tables, one, setup, rules.job, rules.mapping);
    const BoxWork least = box_work(tables, all, setup, rules.job, rules.mapping);
    const ChipWork work = chip_work(setup, dims, rules.job);
    std::vector<double> network_s;
    for (const ChipKernel& kernel : work.kernels) network_s.push_back(kernel.network_s);
    for (std::size_t t = 0; t < work.tensors.size(); ++t) {
      network_s[static_cast<std::size_t>(work.tensors[t].to)] += work.tensors[t].network_s;
      EXPECT_EQ(exact.work.tensors[t].bytes, work.tensors[t].bytes);
      EXPECT_EQ(exact.work.tensors[t].tile_bytes, work.tensors[t].tile_bytes);
      EXPECT_EQ(exact.work.tensors[t].buffers, work.tensors[t].buffers);
      EXPECT_LE(least.work.tensors[t].bytes, work.tensors[t].bytes);
      EXPECT_LE(least.work.tensors[t].tile_bytes, work.tensors[t].tile_bytes);
    }
    EXPECT_EQ(exact.work.resident_bytes, work.resident_bytes);
    EXPECT_LE(least.work.resident_bytes, work.resident_bytes);
    for (std::size_t i = 0; i < network_s.size(); ++i) {
      EXPECT_NEAR(exact.work.kernels[i].network_s, network_s[i], 1e-12 * network_s[i]);
      EXPECT_EQ(exact.work.kernels[i].flops, work.kernels[i].flops);
      EXPECT_EQ(exact.work.kernels[i].weight_bytes, work.kernels[i].weight_bytes);
      EXPECT_LE(least.work.kernels[i].network_s, network_s[i] * (1 + 1e-12));
      EXPECT_LE(least.work.kernels[i].flops, work.kernels[i].flops);
      if (!rules.mapping.whole_tiles) continue;
      EXPECT_EQ(exact.curves[i], tile_curve(work.kernels[i], setup.chip));
      for (const TileStep& step : exact.curves[i]) {
        EXPECT_LE(tiles_for(least.curves[i], step.cycles).value_or(step.tiles + 1), step.tiles);
      }
    }
  }
}

}  // namespace
}  // namespace braid
