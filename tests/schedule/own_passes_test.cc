#include <algorithm>
#include <optional>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/plan/names.h"
#include "braid/plan/totals.h"
#include "braid/schedule/evaluate.h"
#include "braid/schedule/pipeline_time.h"
#include "braid/schedule/plan_pipeline.h"
#include "braid/schedule/timeline.h"

#include "plan/heterogeneous_plan.h"
#include "schedule/relaxation.h"

namespace braid {
namespace {

using ::testing::HasSubstr;

/// Each takes what the longest chain of constraints does, or waits for ever.
TEST(OwnPasses, AgreeWithRelaxation) {
  std::mt19937_64 random(1);
  int ran = 0, stuck = 0;
  for (int trial = 0; trial < 200; ++trial) {
    Plan plan = test::heterogeneous_plan(random, false, trial % 3 == 0);
    test::draw_passes(random, plan, trial % 4 > 0);
    Pipeline pipeline = pipeline_of(plan, kMostPassesWithEvents).pipeline;
    // Relaxation needs passes that take time.
    for (double& forward_s : pipeline.forward_s) forward_s += 1e-3;
    for (double& backward_s : pipeline.backward_s) backward_s += 1e-3;
    const WorkOrder order = schedule_of(pipeline);
    const auto relaxed = relax(pipeline, order);
    PipelineWorkspace workspace;
    if (!relaxed) {
      ++stuck;
      EXPECT_THROW(pipeline_time_s(pipeline, workspace), Error) << trial;
      continue;
    }
    ++ran;
    EXPECT_NEAR(pipeline_time_s(pipeline, workspace), relaxed->time_s, 1e-9) << trial;
  }
  EXPECT_GT(ran, 100);
  EXPECT_GT(stuck, 10);
}

/// The passes of the schedule, listed, change nothing; nor do stages that leave them out.
TEST(OwnPasses, ThoseOfTheScheduleAreTheOrdinaryPipeline) {
  std::mt19937_64 random(2);
  for (int trial = 0; trial < 200; ++trial) {
    Plan plan = test::heterogeneous_plan(random, trial % 2 == 1);
    plan.parallel.schedule = ScheduleKind::one_f_one_b;
    const double time_s = simulate_time_s(plan);
    const std::vector<MemoryBreakdown> memory = memory_of_stages(plan);
    const std::vector<std::int64_t> first = forwards_first(plan);
    for (std::size_t s = 0; s < plan.stages.size(); ++s) {
      if (trial % 3 == 0 && s == 0) continue;
      const std::int64_t m = form_of(plan, s).num_micro_batches;
      std::vector<PassRun>& passes = plan.stages[s].own->passes;
      for (std::int64_t k = 0; k <= m - first[s]; ++k) {
        append_passes(passes, k == 0 ? first[s] : 1, k == m - first[s] ? first[s] : 1);
      }
    }
    EXPECT_NEAR(simulate_time_s(plan), time_s, 1e-12 * time_s) << trial;
    EXPECT_EQ(memory_of_stages(plan), memory) << trial;
  }
}

/// The memory model, the simulator's curve and the passes between a micro-batch's forward and
/// backward pass say the same; passes are those listed.
TEST(OwnPasses, MemoryIsWhatIsCountedInFlight) {
  std::mt19937_64 random(3);
  int beyond_first = 0;
  for (int trial = 0; trial < 200; ++trial) {
    Plan plan = test::heterogeneous_plan(random, trial % 2 == 1);
    test::draw_passes(random, plan, true);
    const Timeline timeline = simulate(plan);
    EXPECT_NEAR(timeline.iteration_time_s, simulate_time_s(plan),
                1e-12 * timeline.iteration_time_s);
    const std::vector<MemoryBreakdown> memory = memory_of_stages(plan);
    const std::vector<std::int64_t> held = micro_batches_held(plan);
    for (std::size_t s = 0; s < plan.stages.size(); ++s) {
      beyond_first += held[s] > forwards_first(plan)[s] ? 1 : 0;
      double most = 0;
      for (const MemorySample& sample : timeline.memory[s]) most = std::max(most, sample.bytes);
      EXPECT_NEAR(most, memory[s].device_total(), 1e-9 * most) << trial;
      // Passes that take no time have no order among their events.
      const ChunkTotals totals = totals_of(plan.profile, plan.stages[s].chunks.front());
      if (totals.forward.total_s() == 0 || totals.backward_input.total_s() == 0) continue;
      std::vector<std::tuple<double, WorkKind, std::int64_t>> passes;
      for (const Event& event : timeline.events) {
        if (event.stage != static_cast<std::int32_t>(s) || event.kind > EventKind::backward) {
          continue;
        }
        const bool forward = event.kind == EventKind::forward;
        passes.emplace_back(event.start_s, forward ? WorkKind::forward : WorkKind::backward,
                            event.micro_batch);
      }
      std::sort(passes.begin(), passes.end());
      const std::vector<Work> listed =
          passes_of(static_cast<std::int32_t>(s), plan.stages[s].own->passes);
      ASSERT_EQ(passes.size(), listed.size());
      std::int64_t now = 0, peak = 0;
      for (std::size_t i = 0; i < passes.size(); ++i) {
        const bool forward = std::get<1>(passes[i]) == WorkKind::forward;
        EXPECT_EQ(std::get<1>(passes[i]), listed[i].kind) << trial;
        EXPECT_EQ(std::get<2>(passes[i]), listed[i].index) << trial;
        peak = std::max(peak, now += forward ? 1 : -1);
      }
      EXPECT_EQ(peak, held[s]) << trial;
    }
  }
  EXPECT_GT(beyond_first, 100);
}

TEST(OwnPasses, AreSaidInTraces) {
  std::mt19937_64 random(4);
  Plan plan;
  do {
    plan = test::heterogeneous_plan(random);
  } while (plan.stages.size() < 2);
  test::draw_passes(random, plan, true);
  const std::string trace = to_trace(plan, simulate(plan));
  for (const Stage& stage : plan.stages) {
    EXPECT_THAT(trace, HasSubstr(passes_text(stage.own->passes)));
  }
  EXPECT_EQ(schedule_text(plan), "own order");
}

}  // namespace
}  // namespace braid
