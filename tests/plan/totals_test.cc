#include "braid/plan/totals.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

namespace braid {
namespace {

Chip test_chip() {
  Chip chip;
  chip.name = "test";
  chip.peaks = {{Dtype::bf16, 1e12}};
  chip.memory = {"RAM", 1e9, 1e10};
  chip.host = Memory{"host", 1e10, 1e9};
  chip.efficiency.memory_peak_fraction = 1;
  chip.efficiency.kernel_launch_s = 0;
  return chip;
}

System test_system(std::int64_t nodes, std::int64_t devices_per_node) {
  System system;
  system.name = "test";
  DeviceGroup group;
  group.chip = test_chip();
  group.nodes = nodes;
  group.devices_per_node = devices_per_node;
  group.intra_node.name = "link";
  group.intra_node.size = devices_per_node;
  group.intra_node.bytes_per_s = group.intra_node.unit_bytes_per_s = 1e9;
  group.intra_node.efficiency = 1;
  system.groups = {group};
  if (nodes > 1) {
    NetworkLevel level;
    level.name = "network";
    level.size = nodes;
    level.bytes_per_s = 1e8;
    level.unit_bytes_per_s = 1e8 * static_cast<double>(devices_per_node);
    level.efficiency = 1;
    system.levels = {level};
  }
  system.device_count = nodes * devices_per_node;
  return system;
}

ChunkTotals chunk(double dense, double expert, double stash) {
  LayerCost cost;
  cost.forward.compute_s = 1;
  cost.backward_input.compute_s = 1;
  cost.backward_weight.compute_s = 1;
  cost.dense_parameters = dense / 2;
  cost.expert_parameters = expert / 2;
  cost.stash_bytes = stash / 2;
  cost.working_bytes = 7;
  ChunkTotals totals;
  totals.add(cost, 2);
  return totals;
}

Parallelism parallelism(int tp, int cp, int dp, int pp, int ep) {
  Parallelism parallel;
  parallel.tp = tp;
  parallel.cp = cp;
  parallel.dp = dp;
  parallel.pp = pp;
  parallel.ep = ep;
  return parallel;
}

TEST(Memory, StateByZeroStage) {
  // Rajbhandari et al. 2020, figure 1, with 4-byte gradients: 2 + 4 + 12 bytes a parameter.
  const System system = test_system(1, 8);
  const ChunkTotals totals = chunk(1000, 0, 0);
  Parallelism parallel = parallelism(1, 1, 8, 1, 1);
  const auto state = [&](Zero zero) {
    parallel.zero = zero;
    const MemoryBreakdown memory =
        memory_of(totals, 1, data_parallel_context(parallel, {}, system));
    return memory.weights + memory.gradients + memory.optimizer;
  };
  EXPECT_DOUBLE_EQ(state(Zero::none), 18000);
  EXPECT_DOUBLE_EQ(state(Zero::optimizer), 6000 + 12000.0 / 8);
  EXPECT_DOUBLE_EQ(state(Zero::gradients), 2000 + 16000.0 / 8);
  EXPECT_DOUBLE_EQ(state(Zero::parameters), 18000.0 / 8);
}

TEST(Memory, ExpertsAreShardedOverTheirOwnReplicas) {
  const System system = test_system(1, 8);
  const ChunkTotals totals = chunk(0, 1000, 0);
  Parallelism parallel = parallelism(1, 1, 8, 1, 4);
  parallel.zero = Zero::optimizer;
  const MemoryBreakdown memory = memory_of(totals, 1, data_parallel_context(parallel, {}, system));
  EXPECT_DOUBLE_EQ(memory.optimizer, 12000.0 / 2);
}

TEST(Memory, WholeExpertsAreShardedOverTensorParallelRanksToo) {
  const System system = test_system(1, 8);
  const ChunkTotals totals = chunk(0, 1000, 0);
  Parallelism parallel = parallelism(2, 1, 4, 1, 4);
  parallel.zero = Zero::optimizer;
  const auto context = [&](bool whole_experts) {
    parallel.whole_experts = whole_experts;
    return data_parallel_context(parallel, {}, system);
  };
  EXPECT_DOUBLE_EQ(context(false).expert_ranks, 1);
  EXPECT_DOUBLE_EQ(context(true).expert_ranks, 2);
  // Experts of a device are again on the fourth one from it.
  const GroupSpan replicas = context(true).expert_group;
  EXPECT_EQ(replicas.members, span_of(system, 4, 2, 8).members);
  EXPECT_EQ(replicas.sharing, span_of(system, 4, 2, 8).sharing);
  const GroupSpan experts = layer_groups(parallel, 8, system).ep;
  EXPECT_EQ(experts.members, span_of(system, 1, 4, 8).members);
  EXPECT_EQ(experts.sharing, span_of(system, 1, 4, 8).sharing);
  EXPECT_DOUBLE_EQ(memory_of(totals, 1, context(true)).optimizer, 12000.0 / 2);
}

TEST(Memory, StashGrowsWithMicroBatchesInFlight) {
  const System system = test_system(1, 1);
  const ChunkTotals totals = chunk(0, 0, 50);
  const auto context = data_parallel_context({}, {}, system);
  EXPECT_DOUBLE_EQ(memory_of(totals, 1, context).activations, 50);
  EXPECT_DOUBLE_EQ(memory_of(totals, 4, context).activations, 200);
}

TEST(Memory, OffloadMovesBytesToTheHost) {
  const System system = test_system(1, 2);
  ChunkTotals totals = chunk(1000, 0, 100);
  totals.offloaded_bytes = 60;
  Parallelism parallel = parallelism(1, 1, 2, 1, 1);
  parallel.offload_optimizer = true;
  const MemoryBreakdown memory = memory_of(totals, 4, data_parallel_context(parallel, {}, system));
  EXPECT_DOUBLE_EQ(memory.optimizer, 0);
  EXPECT_DOUBLE_EQ(memory.host, 12000 + 4 * 60);
  EXPECT_DOUBLE_EQ(memory.activations, 4 * 40 + 2 * 60);
}

TEST(InFlight, ClosedForms) {
  EXPECT_EQ(in_flight_chunks(ScheduleKind::gpipe, 4, 0, 1, 10), 10);
  EXPECT_EQ(in_flight_chunks(ScheduleKind::one_f_one_b, 4, 0, 1, 10), 4);
  EXPECT_EQ(in_flight_chunks(ScheduleKind::one_f_one_b, 4, 3, 1, 10), 1);
  EXPECT_EQ(in_flight_chunks(ScheduleKind::one_f_one_b, 4, 0, 1, 2), 2);
  EXPECT_EQ(in_flight_chunks(ScheduleKind::interleaved, 4, 0, 2, 16), 11);
  EXPECT_EQ(in_flight_chunks(ScheduleKind::interleaved, 4, 3, 2, 16), 5);
}

TEST(Devices, EachStageGetsItsOwnInBothOrders) {
  for (const bool data_outermost : {false, true}) {
    Parallelism parallel = parallelism(2, 2, 3, 4, 1);
    if (data_outermost) parallel.order = {Axis::tp, Axis::cp, Axis::pp, Axis::dp};
    std::vector<std::int64_t> all;
    for (int s = 0; s < parallel.pp; ++s) {
      const auto devices = stage_devices(parallel, s);
      EXPECT_EQ(devices.size(), 12u);
      all.insert(all.end(), devices.begin(), devices.end());
    }
    std::sort(all.begin(), all.end());
    for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], static_cast<std::int64_t>(i));
  }
}

TEST(GradientSync, HidesBehindTheLastBackwardPass) {
  EXPECT_DOUBLE_EQ(exposed_gradient_sync_s(0, 10, 4), 0);
  EXPECT_DOUBLE_EQ(exposed_gradient_sync_s(8, 0, 4), 8);
  EXPECT_DOUBLE_EQ(exposed_gradient_sync_s(8, 100, 4), 2);  // The last bucket alone.
  EXPECT_DOUBLE_EQ(exposed_gradient_sync_s(20, 4, 4), 17);  // Saturated: starts at 1.
  EXPECT_DOUBLE_EQ(exposed_gradient_sync_s(8, 100, 1), 8);
}

TEST(GradientSync, TakesFromThePassThatHidesIt) {
  EXPECT_DOUBLE_EQ(pass_sync_s(8, 100, 4, 0), 2);
  EXPECT_DOUBLE_EQ(pass_sync_s(8, 100, 4, 0.5), 2 + 0.5 * 6);
  EXPECT_DOUBLE_EQ(pass_sync_s(8, 100, 4, 1), 8);
  EXPECT_DOUBLE_EQ(pass_sync_s(8, 0, 4, 0.5), 8);
  EXPECT_DOUBLE_EQ(pass_sync_s(0, 100, 4, 0.5), 0);
}

TEST(GradientSync, EqualsBucketByBucketReplay) {
  std::mt19937_64 random(3);
  for (int trial = 0; trial < 2000; ++trial) {
    const double sync_s = static_cast<double>(random() % 1000) / 10;
    const double backward_s = static_cast<double>(random() % 1000) / 10;
    const int buckets = 1 + static_cast<int>(random() % 12);
    double free_s = 0;
    for (int i = 0; i < buckets; ++i) {
      const double ready_s = backward_s * (i + 1) / buckets;
      free_s = std::max(free_s, ready_s) + sync_s / buckets;
    }
    const double expected = sync_s > 0 ? free_s - backward_s : 0;
    EXPECT_NEAR(exposed_gradient_sync_s(sync_s, backward_s, buckets), expected, 1e-9);
  }
}

/// Chunks' buckets, one after another, each once its part of its chunk's last pass is done; the
/// passes of all chunks before it lie between.
TEST(GradientSync, OfChunksEqualsBucketByBucketReplay) {
  std::mt19937_64 random(41);
  const System system = test_system(1, 4);
  int late = 0;
  int hidden = 0;
  for (int trial = 0; trial < 500; ++trial) {
    Parallelism parallel = parallelism(1, 1, 4, 1, 1);
    parallel.zero = trial % 2 == 0 ? Zero::none : Zero::optimizer;
    const DataParallelContext context = data_parallel_context(parallel, {}, system);
    std::vector<ChunkTotals> chunks;
    for (auto c = random() % 4 + 1; c > 0; --c) {
      LayerCost cost;
      cost.backward_weight.compute_s = 1e-3 * static_cast<double>(random() % 20 + 1);
      cost.dense_parameters = 1e5 * static_cast<double>(random() % 40);
      chunks.emplace_back().add(cost, static_cast<int>(random() % 4 + 1));
    }
    const auto in_a_row = static_cast<std::int64_t>(random() % 6 + 1);
    const StageLoad load = load_of(chunks, context, in_a_row);
    double now_s = 0;
    double free_s = 0;
    double all_s = 0;
    for (std::size_t c = chunks.size(); c-- > 0;) {
      const double pass_s = load.chunks[c].backward_s();
      const StageLoad alone = load_of(std::span(&chunks[c], 1), context);
      now_s += static_cast<double>(in_a_row) * pass_s;
      for (int i = 1; i <= chunks[c].layers; ++i) {
        const double ready_s = now_s - pass_s + pass_s * i / chunks[c].layers;
        if (alone.sync.gradient_sync_s <= 0) continue;
        free_s = std::max(free_s, ready_s) + alone.sync.gradient_sync_s / chunks[c].layers;
      }
      all_s += alone.sync.gradient_sync_s;
    }
    const double expected_s = std::max(0.0, free_s - now_s);
    const double pass_s = load.chunks.front().backward_s();
    EXPECT_NEAR(exposed_gradient_sync_s(load.sync, pass_s), expected_s, 1e-12) << trial;
    EXPECT_NEAR(load.sync.gradient_sync_s, all_s, 1e-12);
    late += load.sync.earlier_late_s > pass_s ? 1 : 0;
    hidden += load.sync.earlier_buckets > 0 && load.sync.earlier_late_s == 0 ? 1 : 0;
  }
  EXPECT_GT(late, 50);
  EXPECT_GT(hidden, 50);
}

TEST(GradientSync, OfChunksThatAreAlikeEqualsThatOfOneAfterAnother) {
  std::mt19937_64 random(42);
  const System system = test_system(1, 4);
  const DataParallelContext context = data_parallel_context(parallelism(1, 1, 4, 1, 1), {}, system);
  int late = 0;
  for (int trial = 0; trial < 500; ++trial) {
    std::vector<ChunkGradients> runs, singles;
    StageParameters all;
    for (auto r = random() % 3 + 1; r > 0; --r) {
      ChunkGradients run;
      run.parameters.dense = 1e5 * static_cast<double>(random() % 40 + 1);
      run.parameters.layers = static_cast<int>(random() % 3 + 1);
      run.backward_s = 1e-3 * static_cast<double>(random() % 20 + 1);
      run.chunks = static_cast<int>(random() % 5 + 1);
      runs.push_back(run);
      all.dense += run.chunks * run.parameters.dense;
      all.layers += run.chunks * run.parameters.layers;
      singles.insert(singles.end(), static_cast<std::size_t>(run.chunks), run);
      for (ChunkGradients& one : singles) one.chunks = 1;
    }
    const auto in_a_row = static_cast<std::int64_t>(random() % 6 + 1);
    StageSync together = stage_sync(all, context);
    StageSync apart = together;
    sync_by_chunk(runs, in_a_row, context, together);
    sync_by_chunk(singles, in_a_row, context, apart);
    ASSERT_NEAR(together.gradient_sync_s, apart.gradient_sync_s, 1e-12) << trial;
    ASSERT_NEAR(together.earlier_gradient_sync_s, apart.earlier_gradient_sync_s, 1e-12) << trial;
    ASSERT_NEAR(together.earlier_late_s, apart.earlier_late_s, 1e-12) << trial;
    ASSERT_EQ(together.earlier_buckets, apart.earlier_buckets) << trial;
    late += together.earlier_late_s > 0 ? 1 : 0;
  }
  EXPECT_GT(late, 50);
}

TEST(GradientSync, OfChunksWaitsForTheEndWhereItDoesNotOverlap) {
  const System system = test_system(1, 4);
  const Parallelism parallel = parallelism(1, 1, 4, 1, 1);
  std::vector<ChunkTotals> chunks(3);
  LayerCost cost;
  cost.backward_weight.compute_s = 1;
  cost.dense_parameters = 1e6;
  for (ChunkTotals& each : chunks) each.add(cost, 2);
  const StageLoad load = load_of(
      chunks, data_parallel_context(parallel, {}, system, {.overlapped_gradients = false}), 4);
  EXPECT_EQ(load.sync.earlier_buckets, 0);
  EXPECT_GT(load.sync.gradient_sync_s, 0);
  EXPECT_EQ(exposed_gradient_sync_s(load.sync, 1), load.sync.gradient_sync_s);
}

TEST(Load, OneRankSynchronisesNothing) {
  const System system = test_system(1, 1);
  const ChunkTotals totals = chunk(1000, 0, 0);
  const StageLoad load = load_of(std::span(&totals, 1), data_parallel_context({}, {}, system));
  EXPECT_EQ(load.sync.gradient_sync_s, 0);
  EXPECT_EQ(load.sync.parameter_sync_s, 0);
  // The optimizer moves 2·12 + 4 + 2 bytes a parameter at 1e10 bytes/s.
  EXPECT_DOUBLE_EQ(load.sync.optimizer_s, 30e3 / 1e10);
  EXPECT_DOUBLE_EQ(load.chunks[0].forward_s(), 2);
  EXPECT_DOUBLE_EQ(load.chunks[0].backward_s(), 4);
}

TEST(Load, ShardedStepsTakeTheirShareOfTheOptimizer) {
  const System system = test_system(1, 4);
  const ChunkTotals totals = chunk(1000, 0, 0);
  Parallelism parallel = parallelism(1, 1, 4, 1, 1);
  const double whole =
      load_of(std::span(&totals, 1), data_parallel_context(parallel, {}, system)).sync.optimizer_s;
  parallel.zero = Zero::optimizer;
  const StageLoad sharded =
      load_of(std::span(&totals, 1), data_parallel_context(parallel, {}, system));
  EXPECT_DOUBLE_EQ(sharded.sync.optimizer_s, whole / 4);
  EXPECT_GT(sharded.sync.gradient_sync_s, 0);
  EXPECT_GT(sharded.sync.parameter_sync_s, 0);
  EXPECT_EQ(sharded.sync.buckets, 2);
}

TEST(Handover, CrossingNodesIsSlower) {
  const System system = test_system(2, 4);
  const Parallelism inside = parallelism(1, 1, 1, 8, 1);
  const double near_s = transfer_time_s(inside, system, 0, 1, 1e6);
  const double far_s = transfer_time_s(inside, system, 3, 4, 1e6);
  EXPECT_GT(near_s, 0);
  EXPECT_GT(far_s, near_s);
}

}  // namespace
}  // namespace braid
