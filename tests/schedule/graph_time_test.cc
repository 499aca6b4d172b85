#include "braid/schedule/graph_time.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/schedule/evaluate.h"
#include "braid/schedule/pipeline_time.h"

#include "schedule/instances.h"

namespace braid {
namespace {

/// Leaping over repeated rounds multiplies where the pass-by-pass evaluation adds.
constexpr double kRounding = 1e-12;

/// The stages in another order, so that numbers say nothing of what comes first.
void renumber(Random& random, Pipeline& pipeline) {
  std::vector<std::int32_t> number(static_cast<std::size_t>(pipeline.pp));
  std::iota(number.begin(), number.end(), 0);
  std::shuffle(number.begin(), number.end(), random);
  for (Transfer& transfer : pipeline.transfers) {
    transfer.source = number[static_cast<std::size_t>(transfer.source)];
    transfer.target = number[static_cast<std::size_t>(transfer.target)];
  }
}

/// Transfers that take another time back, or share a link with another.
void vary_transfers(Random& random, Pipeline& pipeline) {
  for (Transfer& transfer : pipeline.transfers) {
    if (pick(random, 0, 2) == 0) transfer.backward_time_s = pick_time(random, 0, 20);
  }
  if (!pipeline.transfers.empty() && pick(random, 0, 2) == 0) {
    pipeline.transfers.push_back(pipeline.transfers[static_cast<std::size_t>(
        pick(random, 0, static_cast<std::int64_t>(pipeline.transfers.size()) - 1))]);
    pipeline.transfers.back().time_s = pick_time(random, 0, 9);
  }
}

void expect_same(double time_s, const std::vector<StageTiming>& stages, const Pipeline& pipeline,
                 double rounding, int trial) {
  const Evaluation whole = evaluate(pipeline, schedule_of(pipeline), Record::times);
  ASSERT_NEAR(time_s, whole.iteration_time_s, rounding * time_s) << "trial " << trial;
  ASSERT_EQ(stages.size(), whole.stages.size());
  for (std::size_t s = 0; s < stages.size(); ++s) {
    ASSERT_NEAR(stages[s].passes_end_s, whole.stages[s].passes_end_s, rounding * time_s)
        << "trial " << trial << " stage " << s;
    ASSERT_NEAR(stages[s].end_s, whole.stages[s].end_s, rounding * time_s);
    ASSERT_EQ(stages[s].parameter_wait_s, whole.stages[s].parameter_wait_s);
  }
}

TEST(GraphTime, IsThatOfTheWholeSimulation) {
  Random random(31);
  GraphWorkspace workspace;  // Shared by all: what a call leaves in it must not matter.
  for (int trial = 0; trial < 12000; ++trial) {
    const int pp = static_cast<int>(pick(random, 1, 9));
    Pipeline pipeline = random_graph(random, pp, 1, pick(random, 1, 14));
    if (trial % 3 == 0) pipeline.schedule = ScheduleKind::gpipe;
    vary_transfers(random, pipeline);
    if (trial % 2 == 0) renumber(random, pipeline);
    const double time_s = graph_time_s(pipeline, workspace);
    ASSERT_GT(time_s, 0);
    expect_same(time_s, workspace.stages, pipeline, kRounding, trial);
    if (HasFatalFailure()) return;
  }
}

TEST(GraphTime, InterleavedIsThatOfTheWholeSimulation) {
  Random random(33);
  GraphWorkspace workspace;
  for (int trial = 0; trial < 4000; ++trial) {
    const int pp = static_cast<int>(pick(random, 1, 5));
    const int vp = static_cast<int>(pick(random, 2, 4));
    const std::int64_t groups = trial % 10 == 0 ? pick(random, 4, 40) : pick(random, 1, 4);
    Pipeline pipeline = random_graph(random, pp, vp, pp * groups);
    pipeline.schedule = ScheduleKind::interleaved;
    vary_transfers(random, pipeline);
    const double time_s = graph_time_s(pipeline, workspace);
    ASSERT_GT(time_s, 0);
    expect_same(time_s, workspace.stages, pipeline, kRounding, trial);
    if (HasFatalFailure()) return;
  }
}

TEST(GraphTime, RefusesWhatLeadsBack) {
  Pipeline pipeline = even_chain(ScheduleKind::interleaved, 3, 2, 6, {1, 1});
  pipeline.transfers.push_back({3, 1, 0});
  GraphWorkspace workspace;
  EXPECT_LT(graph_time_s(pipeline, workspace), 0);
}

TEST(GraphTime, LeapsOverRepeatedRounds) {
  Random random(32);
  GraphWorkspace workspace;
  for (int trial = 0; trial < 300; ++trial) {
    const int pp = static_cast<int>(pick(random, 2, 12));
    Pipeline pipeline = random_graph(random, pp, 1, pick(random, 50, 400));
    if (trial % 4 == 0) pipeline.schedule = ScheduleKind::gpipe;
    // Near ties take longest to settle; sums are not exact.
    for (double& time_s : pipeline.forward_s)
      time_s = trial % 3 == 0 ? 1 + time_s * 1e-4 : time_s / 3;
    for (double& time_s : pipeline.backward_s)
      time_s = trial % 3 == 0 ? 2 + time_s * 1e-4 : time_s / 3;
    const double scale = trial % 5 == 0 ? 0 : trial % 5 == 1 ? 3 : 0.05;
    for (Transfer& transfer : pipeline.transfers) transfer.time_s *= scale;
    const double time_s = graph_time_s(pipeline, workspace);
    expect_same(time_s, workspace.stages, pipeline, 1e-11, trial);
    if (HasFatalFailure()) return;
  }
}

TEST(GraphTime, ParallelBranchesRunAtOnce) {
  // n branches of one stage into a last one, equal passes, no transfers: two stages deep, so that
  // the time is that of a chain of two.
  GraphWorkspace workspace;
  for (std::int32_t branches = 1; branches <= 20; ++branches) {
    Pipeline pipeline = even_chain(ScheduleKind::one_f_one_b, branches + 1, 1, 8, {1, 2});
    pipeline.transfers.clear();
    for (std::int32_t s = 0; s < branches; ++s) pipeline.transfers.push_back({s, branches, 0});
    EXPECT_EQ(graph_time_s(pipeline, workspace), (8 + 2 - 1) * 3.0);
    pipeline.schedule = ScheduleKind::gpipe;
    EXPECT_EQ(graph_time_s(pipeline, workspace), (8 + 2 - 1) * 3.0);
  }
}

TEST(GraphTime, LeavesCirclesToWhoeverNamesThem) {
  Pipeline pipeline = even_chain(ScheduleKind::one_f_one_b, 3, 1, 4, {1, 1});
  pipeline.transfers.push_back({2, 0, 0});
  GraphWorkspace workspace;
  EXPECT_LT(graph_time_s(pipeline, workspace), 0);
  PipelineWorkspace whole;
  EXPECT_THROW(pipeline_time_s(pipeline, whole), Error);
}

}  // namespace
}  // namespace braid
