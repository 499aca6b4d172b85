#include "braid/dataflow/staged_plan.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "braid/base/infinity.h"
#include "braid/dataflow/kernel_stages.h"

#include "dataflow/random_kernels.h"
#include "dataflow/small_setup.h"

namespace braid {
namespace {

/// The layer of the small setup so many times in a row, on rings of 2 chips and `stages`.
DataflowSetup repeated_setup(std::int32_t layers, std::int64_t stages) {
  DataflowSetup setup = parse_dataflow_setup(small_setup_text(), "setup.txt");
  const KernelGraph layer = setup.graph;
  const auto count = static_cast<std::int32_t>(layer.kernels.size());
  for (std::int32_t l = 1; l < layers; ++l) {
    const std::int32_t first = l * count;
    setup.graph.kernels.insert(setup.graph.kernels.end(), layer.kernels.begin(),
                               layer.kernels.end());
    for (const KernelTensor& tensor : layer.tensors) {
      setup.graph.tensors.push_back({tensor.from + first, tensor.to + first});
    }
    setup.graph.tensors.push_back({first - 1, first});
  }
  setup.job.whole_model = true;
  setup.chips = 2 * stages;
  setup.fabric.dimensions = {{FabricShape::ring, 2, 50e9, FabricRole::tensor},
                             {FabricShape::ring, stages, 20e9, FabricRole::pipeline}};
  return setup;
}

void expect_sound(const DataflowPlan& plan, const DataflowPlanRules& rules) {
  ASSERT_EQ(plan.outcome.mapping.partition_of.size(), plan.work.kernels.size());
  std::size_t partitions = 0;
  double slowest_s = 0;
  for (const PlannedStage& stage : plan.stages) {
    EXPECT_EQ(stage.first_partition, partitions);
    partitions += stage.partitions;
    slowest_s = std::max(slowest_s, stage.time_s);
    double sum_s = 0;
    for (std::size_t p = stage.first_partition; p < partitions; ++p) {
      sum_s += plan.outcome.cost.partitions[p].time_s;
    }
    EXPECT_NEAR(sum_s, stage.mapped_s, 1e-9 * sum_s);
    EXPECT_GE(stage.time_s, stage.mapped_s);
    if (rules.job.plain_pipeline) {
      EXPECT_GE(stage.time_s, stage.message_s);
    }
  }
  EXPECT_EQ(partitions, plan.outcome.cost.partitions.size());
  EXPECT_EQ(plan.outcome.cost.time_s, slowest_s);
  EXPECT_LE(plan.outcome.lower_bound_s, slowest_s);
  for (const ChipTensor& tensor : plan.work.tensors) {
    EXPECT_LE(plan.outcome.mapping.partition_of[static_cast<std::size_t>(tensor.from)],
              plan.outcome.mapping.partition_of[static_cast<std::size_t>(tensor.to)]);
  }
}

TEST(StagedPlan, StagesOfAWholeModelAddUp) {
  for (const std::int64_t stages : {1, 2, 3, 5}) {
    const DataflowSetup setup = repeated_setup(4, stages);
    for (const DataflowPlanRules& rules :
         {default_plan_rules(setup), published_plan_rules(setup)}) {
      const DataflowPlan plan = plan_dataflow(setup, rules);
      ASSERT_EQ(plan.stages.size(), static_cast<std::size_t>(stages));
      expect_sound(plan, rules);
      EXPECT_EQ(plan.time.pipeline, static_cast<double>(stages));
      double flops = 0;
      for (const Kernel& kernel : setup.graph.kernels) flops += kernel_flops(kernel);
      EXPECT_DOUBLE_EQ(plan.time.flops, 32 * flops);
      DataflowPlanRules alone = rules;
      alone.kernel_by_kernel = true;
      const DataflowPlan slow = plan_dataflow(setup, alone);
      expect_sound(slow, alone);
      EXPECT_LE(plan.time.time_s, slow.time.time_s * (1 + 1e-9));
    }
  }
}

TEST(StagedPlan, OneStageIsTheWholeGraphOnItsChips) {
  DataflowSetup setup = repeated_setup(3, 1);
  DataflowPlanRules rules = default_plan_rules(setup);
  rules.job.joint_sharding = false;
  const DataflowPlan staged = plan_dataflow(setup, rules);
  setup.job.whole_model = false;
  setup.job.layers = 1;
  const DataflowPlan layer = plan_dataflow(setup, rules);
  EXPECT_EQ(staged.time.time_s, layer.time.time_s);
  EXPECT_EQ(staged.outcome.cost.partitions.size(), layer.outcome.cost.partitions.size());
}

// Stages are found over any sizes and roles of the network, never slower than what is given.
TEST(StagedPlan, SearchIsNeverSlower) {
  const DataflowSetup setup = repeated_setup(3, 4);
  const DataflowPlanRules rules = default_plan_rules(setup);
  const DataflowPlan given = plan_dataflow(setup, rules);
  const DataflowSearch roles = search_fabrics(setup, rules, FabricSearch::roles);
  const DataflowSearch shapes = search_fabrics(setup, rules, FabricSearch::shapes);
  EXPECT_LE(roles.best.time.time_s, given.time.time_s);
  EXPECT_LE(shapes.best.time.time_s, roles.best.time.time_s);
}

// All ways to give kernels to stages, each mapped at its best.
TEST(StagedPlan, BoundIsBelowAllStagesAndMappings) {
  std::mt19937_64 dice(11);
  int exact = 0, bounded = 0;
  for (int round = 0; round < 60; ++round) {
    DataflowSetup setup = repeated_setup(1, 2);
    setup.graph = random_kernels(dice, dice() % 3 + 3);
    setup.fabric.dimensions[0].size = 1;
    setup.fabric.dimensions[1].bytes_per_s = 1e9 * static_cast<double>(dice() % 40 + 1);
    setup.chip.sram_bytes = static_cast<double>(dice() % 4 + 1) * 4e6;
    setup.rules.overlap = static_cast<PartitionOverlap>(dice() % 3);
    setup.chips = 2;
    const DataflowPlanRules rules = default_plan_rules(setup);
    const Sharding whole(setup.graph.kernels.size(), KernelDim::none);
    const DataflowPlan plan = plan_stages(setup, rules, {&whole, 1});
    expect_sound(plan, rules);
    const ChipWork work = chip_work(setup, whole, rules.job);
    double best_s = kInfinity;
    for (std::uint32_t second = 0; second < 1U << work.kernels.size(); ++second) {
      ChipWork halves[2];
      std::vector<std::int32_t> number(work.kernels.size());
      for (std::size_t i = 0; i < number.size(); ++i) {
        ChipWork& half = halves[second >> i & 1];
        number[i] = static_cast<std::int32_t>(half.kernels.size());
        half.kernels.push_back(work.kernels[i]);
      }
      bool valid = true;
      std::vector<double> sent_bytes(work.kernels.size(), 0);
      for (ChipTensor tensor : work.tensors) {
        const std::uint32_t from = second >> tensor.from & 1, to = second >> tensor.to & 1;
        valid = valid && from <= to;
        if (from != to) sent_bytes[static_cast<std::size_t>(tensor.from)] = tensor.bytes;
        tensor.from = number[static_cast<std::size_t>(tensor.from)];
        tensor.to = number[static_cast<std::size_t>(tensor.to)];
        if (from == to) halves[from].tensors.push_back(tensor);
      }
      if (!valid) continue;
      double sent_s = 0;
      for (const double bytes : sent_bytes) {
        sent_s += pipeline_hop_s(bytes, setup.fabric, rules.job.collectives);
      }
      double slowest_s = 0;
      for (std::size_t half = 0; half < 2; ++half) {
        double time_s = 0;
        if (!halves[half].kernels.empty()) {
          time_s = map_kernels(halves[half], setup.chip, rules.mapping).cost.time_s;
        }
        const double on_s = half == 0 ? sent_s : 0;
        time_s =
            rules.mapping.overlap == PartitionOverlap::all ? std::max(time_s, on_s) : time_s + on_s;
        slowest_s = std::max(slowest_s, time_s);
      }
      best_s = std::min(best_s, slowest_s);
    }
    EXPECT_LE(plan.outcome.lower_bound_s, best_s * (1 + 1e-9)) << round;
    EXPECT_GE(plan.outcome.cost.time_s, best_s * (1 - 1e-9)) << round;
    exact += plan.outcome.cost.time_s <= best_s * (1 + 1e-9) ? 1 : 0;
    bounded += plan.outcome.status == MappingStatus::optimal ? 1 : 0;
  }
  EXPECT_GT(exact, 30);
  EXPECT_GE(exact, bounded);
}

// Four products forward and four back, each of which reads what its forward one read: gradients go
// back through the same stages, and what is kept for them stays where it is.
TEST(StagedPlan, BackwardKernelsAreWithTheirForwardOnes) {
  DataflowSetup setup = repeated_setup(1, 2);
  setup.fabric.dimensions[0].size = 1;
  setup.chips = 2;
  setup.graph.tensors.clear();
  const Kernel product = setup.graph.kernels[0];
  setup.graph.kernels.assign(8, product);
  for (std::int32_t i = 0; i < 8; ++i) {
    Kernel& kernel = setup.graph.kernels[static_cast<std::size_t>(i)];
    kernel.m = kernel.k = 1024;
    kernel.backward = i >= 4;
    if (i > 0) setup.graph.tensors.push_back({i - 1, i});
    if (i > 4) setup.graph.tensors.push_back({7 - i, i});  // 4 reads 3 already.
  }
  const DataflowPlanRules rules = default_plan_rules(setup);
  const DataflowPlan plan = plan_dataflow(setup, rules);
  ASSERT_EQ(plan.stages.size(), 2U);
  const auto stage_of = [&plan](std::size_t kernel) {
    const auto partition = static_cast<std::size_t>(plan.outcome.mapping.partition_of[kernel]);
    return partition < plan.stages[1].first_partition ? 0 : 1;
  };
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(stage_of(i), i == 0 || i == 1 || i == 6 || i == 7 ? 0 : 1) << i;
  }
  // One tensor to the next stage and one back.
  const double bytes = 1024.0 * 512 * 2;
  EXPECT_NEAR(plan.stages[0].message_s, 2 * bytes / 20e9, 1e-12);
  EXPECT_EQ(plan.stages[1].message_s, 0);
  // As published backward kernels have stages of their own.
  const DataflowPlan apart = plan_dataflow(setup, published_plan_rules(setup));
  ASSERT_EQ(apart.stages.size(), 2U);
  for (std::size_t i = 0; i < 8; ++i) {
    const auto partition = static_cast<std::size_t>(apart.outcome.mapping.partition_of[i]);
    EXPECT_EQ(partition < apart.stages[1].first_partition, i < 4) << i;
  }
}

TEST(StagedPlan, StagesThatDoNotFitAreNoPlan) {
  DataflowSetup setup = repeated_setup(4, 2);
  setup.chip.dram_bytes = 9e6;  // A product's parameters on each of two chips are 4.2 MB.
  const DataflowPlan plan = plan_dataflow(setup, default_plan_rules(setup));
  EXPECT_TRUE(plan.outcome.mapping.partition_of.empty());
  ASSERT_TRUE(plan.outcome.cost.violation);
  EXPECT_EQ(plan.outcome.cost.violation->rfind("stage 1: ", 0), 0U) << *plan.outcome.cost.violation;
}

}  // namespace
}  // namespace braid
