#include <algorithm>
#include <optional>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/plan/totals.h"
#include "braid/schedule/evaluate.h"
#include "braid/schedule/graph_time.h"
#include "braid/schedule/pipeline_time.h"
#include "braid/schedule/timeline.h"

#include "plan/heterogeneous_plan.h"
#include "schedule/instances.h"
#include "schedule/relaxation.h"

namespace braid {
namespace {

/// A random graph of 1F1B stages, of rounds of their own or of m micro-batches each. `ample`: every
/// stage has at least as many warm-up passes as those behind it.
Pipeline random_warm_ups(Random& random, std::int64_t m, bool like, bool ample) {
  const int pp = static_cast<int>(pick(random, 1, 6));
  Pipeline pipeline = random_graph(random, pp, 1, m);
  pipeline.schedule = ScheduleKind::one_f_one_b;
  for (int s = 0; s < pp && !like; ++s) {
    std::int64_t round = pick(random, 1, m);
    while (m % round != 0) --round;
    pipeline.rounds.push_back({round, m / round});
  }
  for (std::size_t s = 0; s < static_cast<std::size_t>(pp); ++s) {
    pipeline.warm_ups.push_back(pick(random, 1, pipeline.micro_batches_of(s)));
  }
  for (auto s = static_cast<std::size_t>(pp); ample && s-- > 0;) {
    for (const Transfer& transfer : pipeline.transfers) {
      if (transfer.source != static_cast<std::int32_t>(s)) continue;
      std::int64_t& warm_up = pipeline.warm_ups[s];
      warm_up = std::max(warm_up, pipeline.warm_ups[static_cast<std::size_t>(transfer.target)]);
    }
  }
  return pipeline;
}

/// Each takes what the longest chain of constraints does, or waits for ever.
TEST(OwnWarmUps, AgreeWithRelaxation) {
  Random random(1);
  int ran = 0, stuck = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const Pipeline pipeline =
        random_warm_ups(random, pick(random, 1, 6), trial % 2 == 0, trial % 3 > 0);
    const WorkOrder order = schedule_of(pipeline);
    const auto relaxed = relax(pipeline, order);
    PipelineWorkspace workspace;
    if (!relaxed) {
      ++stuck;
      EXPECT_THROW(evaluate(pipeline, order, Record::times), Error) << trial;
      EXPECT_THROW(pipeline_time_s(pipeline, workspace), Error) << trial;
      continue;
    }
    ++ran;
    const Evaluation evaluation = evaluate(pipeline, order, Record::times);
    EXPECT_NEAR(evaluation.iteration_time_s, relaxed->time_s, 1e-9) << trial;
    EXPECT_NEAR(pipeline_time_s(pipeline, workspace), relaxed->time_s, 1e-9) << trial;
  }
  EXPECT_GT(ran, 100);
  EXPECT_GT(stuck, 20);
}

/// The timer of rounds, over many of them, does what going through every pass does.
TEST(OwnWarmUps, RoundsRepeatThemselves) {
  Random random(2);
  for (int trial = 0; trial < 400; ++trial) {
    const Pipeline pipeline = random_warm_ups(random, pick(random, 1, 200), true, true);
    GraphWorkspace workspace;
    const double time_s = graph_time_s(pipeline, workspace);
    const Evaluation evaluation = evaluate(pipeline, schedule_of(pipeline), Record::times);
    EXPECT_NEAR(time_s, evaluation.iteration_time_s, 1e-12 * time_s) << trial;
  }
}

/// Counts that are those of the schedule change nothing.
TEST(OwnWarmUps, ThoseOfTheScheduleAreTheOrdinaryPipeline) {
  Random random(3);
  for (int trial = 0; trial < 200; ++trial) {
    Plan plan = test::heterogeneous_plan(random, trial % 2 == 1);
    plan.parallel.schedule = ScheduleKind::one_f_one_b;
    const double time_s = simulate_time_s(plan);
    const std::vector<MemoryBreakdown> memory = memory_of_stages(plan);
    const std::vector<std::int64_t> first = forwards_first(plan);
    for (std::size_t s = 0; s < plan.stages.size(); ++s) plan.stages[s].own->warm_up = first[s];
    EXPECT_NEAR(simulate_time_s(plan), time_s, 1e-12 * time_s) << trial;
    EXPECT_EQ(memory_of_stages(plan), memory) << trial;
  }
}

/// The memory model, the simulator's curve and the passes between a micro-batch's forward and
/// backward pass say the same.
TEST(OwnWarmUps, MemoryIsWhatIsCountedInFlight) {
  Random random(4);
  int ran = 0;
  for (int trial = 0; trial < 300; ++trial) {
    Plan plan = test::heterogeneous_plan(random, trial % 2 == 1);
    test::draw_warm_ups(random, plan, trial % 4 > 0);
    std::optional<Timeline> timeline;
    try {
      timeline = simulate(plan);
    } catch (const Error&) {
      EXPECT_THROW(simulate_time_s(plan), Error) << trial;
      continue;
    }
    ++ran;
    EXPECT_NEAR(timeline->iteration_time_s, simulate_time_s(plan),
                1e-12 * timeline->iteration_time_s);
    const std::vector<MemoryBreakdown> memory = memory_of_stages(plan);
    std::vector<std::int64_t> held(plan.stages.size(), 0), most_held(plan.stages.size(), 0);
    std::vector<Event> passes;
    for (const Event& event : timeline->events) {
      const bool forward = event.kind == EventKind::forward;
      if (forward || event.kind == EventKind::backward) passes.push_back(event);
    }
    // In the order in which each device runs them.
    std::stable_sort(passes.begin(), passes.end(), [](const Event& a, const Event& b) {
      return std::tie(a.stage, a.start_s, a.end_s) < std::tie(b.stage, b.start_s, b.end_s);
    });
    for (const Event& event : passes) {
      const auto s = static_cast<std::size_t>(event.stage);
      held[s] += event.kind == EventKind::forward ? 1 : -1;
      most_held[s] = std::max(most_held[s], held[s]);
    }
    const std::vector<std::int64_t> first = forwards_first(plan);
    for (std::size_t s = 0; s < plan.stages.size(); ++s) {
      double most = 0;
      for (const MemorySample& sample : timeline->memory[s]) most = std::max(most, sample.bytes);
      EXPECT_NEAR(most, memory[s].device_total(), 1e-9 * most) << trial;
      // Passes that take no time have no order among their events.
      const ChunkTotals totals = totals_of(plan.profile, plan.stages[s].chunks.front());
      if (totals.forward.total_s() > 0 && totals.backward_input.total_s() > 0) {
        EXPECT_EQ(most_held[s], first[s]) << trial;
      }
    }
  }
  EXPECT_GT(ran, 150);
}

}  // namespace
}  // namespace braid
