#include <algorithm>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/schedule/evaluate.h"
#include "braid/schedule/pipeline_time.h"
#include "braid/schedule/timeline.h"

#include "plan/heterogeneous_plan.h"
#include "schedule/instances.h"
#include "schedule/relaxation.h"

namespace braid {
namespace {

/// A random graph of stages whose rounds divide `samples`; handovers take other times back.
Pipeline random_rounds(Random& random, int pp, std::int64_t samples) {
  Pipeline pipeline = random_graph(random, pp, 1, 1);
  std::vector<std::int64_t> divisors;
  for (std::int64_t d = 1; d <= samples; ++d) {
    if (samples % d == 0) divisors.push_back(d);
  }
  for (int s = 0; s < pp; ++s) {
    const auto i = pick(random, 0, static_cast<std::int64_t>(divisors.size()) - 1);
    const std::int64_t round = divisors[static_cast<std::size_t>(i)];
    pipeline.rounds.push_back({round, samples / round});
  }
  for (Transfer& transfer : pipeline.transfers) {
    if (pick(random, 0, 1) == 0) transfer.backward_time_s = pick_time(random, 0, 20);
  }
  if (pick(random, 0, 3) == 0) pipeline.schedule = ScheduleKind::gpipe;
  return pipeline;
}

/// Every order that schedule_of prescribes can be kept, and takes what the longest chain of
/// constraints does, sample by sample.
TEST(DifferentRounds, AgreeWithRelaxation) {
  Random random(1);
  for (int trial = 0; trial < 300; ++trial) {
    constexpr std::int64_t kSamples[] = {4, 6, 12};
    const Pipeline pipeline =
        random_rounds(random, static_cast<int>(pick(random, 1, 5)), kSamples[trial % 3]);
    const WorkOrder order = schedule_of(pipeline);
    const auto relaxed = relax(pipeline, order);
    ASSERT_TRUE(relaxed) << "trial " << trial << ": the order cannot be kept";
    const Evaluation evaluation = evaluate(pipeline, order, Record::times);
    EXPECT_NEAR(evaluation.iteration_time_s, relaxed->time_s, 1e-9);
    for (std::size_t s = 0; s < relaxed->stage_end_s.size(); ++s) {
      EXPECT_NEAR(evaluation.stages[s].end_s, relaxed->stage_end_s[s], 1e-9);
    }
    PipelineWorkspace workspace;
    EXPECT_EQ(pipeline_time_s(pipeline, workspace), evaluation.iteration_time_s);
    if (HasFailure()) FAIL() << "trial " << trial;
  }
}

/// Rounds that do not nest in long pipelines, with many of them.
TEST(DifferentRounds, NeverWaitForEver) {
  Random random(2);
  for (int trial = 0; trial < 300; ++trial) {
    const Pipeline pipeline = random_rounds(random, static_cast<int>(pick(random, 2, 12)), 720);
    EXPECT_NO_THROW(evaluate(pipeline, schedule_of(pipeline), Record::times)) << trial;
  }
}

TEST(DifferentRounds, LikeRoundsAreTheOrdinaryPipeline) {
  Random random(3);
  for (int trial = 0; trial < 500; ++trial) {
    const int pp = static_cast<int>(pick(random, 1, 6));
    const std::int64_t m = pick(random, 1, 8);
    const Pipeline pipeline = random_graph(random, pp, 1, m);
    Pipeline told = pipeline;
    told.rounds.assign(static_cast<std::size_t>(pp), {3, m});
    PipelineWorkspace workspace;
    const double time_s = pipeline_time_s(pipeline, workspace);
    EXPECT_NEAR(pipeline_time_s(told, workspace), time_s, 1e-12 * time_s);
  }
}

TEST(DifferentRounds, RelabellingAndDoubling) {
  Random random(4);
  for (int trial = 0; trial < 300; ++trial) {
    const int pp = static_cast<int>(pick(random, 2, 6));
    const Pipeline pipeline = random_rounds(random, pp, 24);
    std::vector<std::int32_t> name(static_cast<std::size_t>(pp));
    for (std::size_t i = 0; i < name.size(); ++i) name[i] = static_cast<std::int32_t>(i);
    std::shuffle(name.begin(), name.end(), random);
    Pipeline other = pipeline;
    for (std::size_t s = 0; s < name.size(); ++s) {
      const auto to = static_cast<std::size_t>(name[s]);
      other.forward_s[to] = 2 * pipeline.forward_s[s];
      other.backward_s[to] = 2 * pipeline.backward_s[s];
      other.sync[to] = pipeline.sync[s];
      other.sync[to].gradient_sync_s *= 2;
      other.sync[to].parameter_sync_s *= 2;
      other.sync[to].optimizer_s *= 2;
      other.sync[to].shared_gradient_sync_s *= 2;
      other.rounds[to] = pipeline.rounds[s];
    }
    for (Transfer& transfer : other.transfers) {
      transfer.source = name[static_cast<std::size_t>(transfer.source)];
      transfer.target = name[static_cast<std::size_t>(transfer.target)];
      transfer.time_s *= 2;
      if (transfer.backward_time_s >= 0) transfer.backward_time_s *= 2;
    }
    EXPECT_EQ(2 * evaluate(pipeline, schedule_of(pipeline), Record::times).iteration_time_s,
              evaluate(other, schedule_of(other), Record::times).iteration_time_s);
  }
}

TEST(DifferentRounds, OtherSamplesAreRefused) {
  Random random(5);
  Pipeline pipeline = random_rounds(random, 3, 12);
  pipeline.rounds[1].count += 1;
  EXPECT_THROW(check_pipeline(pipeline, 1000), Error);
  pipeline.rounds[1] = {12, 1};
  EXPECT_NO_THROW(check_pipeline(pipeline, 1000));
  EXPECT_THROW(check_pipeline(pipeline, 2), Error);
}

/// What a plan's stages hold while it runs is what memory_of_stages says of them.
TEST(DifferentRounds, TimelinesOfPlansHoldWhatTheirMemorySays) {
  Random random(6);
  for (int trial = 0; trial < 200; ++trial) {
    const Plan plan = test::heterogeneous_plan(random, trial % 2 == 1);
    const Timeline timeline = simulate(plan);
    const std::vector<MemoryBreakdown> memory = memory_of_stages(plan);
    EXPECT_NEAR(timeline.iteration_time_s, simulate_time_s(plan),
                1e-12 * timeline.iteration_time_s);
    for (std::size_t s = 0; s < plan.stages.size(); ++s) {
      double most = 0;
      for (const MemorySample& sample : timeline.memory[s]) most = std::max(most, sample.bytes);
      EXPECT_NEAR(most, memory[s].device_total(), 1e-9 * most) << trial;
    }
    std::vector<std::int64_t> forwards(plan.stages.size(), 0);
    for (const Event& event : timeline.events) {
      if (event.kind == EventKind::forward) ++forwards[static_cast<std::size_t>(event.stage)];
    }
    for (std::size_t s = 0; s < plan.stages.size(); ++s) {
      EXPECT_EQ(forwards[s], form_of(plan, s).num_micro_batches);
    }
    const Metrics metrics = measure(plan);
    EXPECT_NEAR(metrics.iteration_time_s, timeline.iteration_time_s,
                1e-12 * timeline.iteration_time_s);
    EXPECT_GE(metrics.bubble_s, 0);
    EXPECT_FALSE(to_trace(plan, timeline).empty());
  }
}

/// Twice the time for all work, half the rates, twice the latencies: twice the iteration.
TEST(DifferentRounds, HalfAsFastTakesTwiceAsLong) {
  Random random(7);
  for (int trial = 0; trial < 100; ++trial) {
    const Plan plan = test::heterogeneous_plan(random, trial % 2 == 1);
    Plan slow = plan;
    for (auto& options : slow.profile.kinds) {
      for (Option& option : options) {
        for (PassTime* pass : {&option.cost.forward, &option.cost.recompute,
                               &option.cost.backward_input, &option.cost.backward_weight}) {
          pass->compute_s *= 2;
          pass->tp_comm_s *= 2;
        }
      }
    }
    for (DeviceGroup& group : slow.system.groups) {
      group.chip.memory.bytes_per_s /= 2;
      group.chip.efficiency.kernel_launch_s *= 2;
      if (group.chip.host) group.chip.host->bytes_per_s /= 2;
      group.intra_node.bytes_per_s /= 2;
      group.intra_node.unit_bytes_per_s /= 2;
      group.intra_node.latency_s *= 2;
    }
    for (NetworkLevel& level : slow.system.levels) {
      level.bytes_per_s /= 2;
      level.unit_bytes_per_s /= 2;
      level.latency_s *= 2;
    }
    EXPECT_NEAR(simulate_time_s(slow), 2 * simulate_time_s(plan), 1e-12 * simulate_time_s(slow));
  }
}

}  // namespace
}  // namespace braid
