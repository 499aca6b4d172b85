#include "braid/schedule/chain_waves.h"

#include <algorithm>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "braid/schedule/evaluate.h"
#include "braid/schedule/pipeline_time.h"

#include "schedule/instances.h"

namespace braid {
namespace {

/// The passes of a chain; parameters arrive as its synchronisation says.
TimedPasses passes_of(const Pipeline& pipeline, PipelineWorkspace& workspace) {
  pipeline_time_s(pipeline, workspace);
  TimedPasses timed;
  timed.chain = workspace.chain_times;
  for (std::size_t s = 0; s < pipeline.sync.size(); ++s) {
    timed.ready_s.push_back(parameters_ready_s(timed.chain.sync[s], timed.chain.forward_s[s]));
  }
  return timed;
}

TEST(ChainWaves, AnyNumberOfLanesAgreesWithTheGeneralEvaluator) {
  Random random(31);
  PipelineWorkspace workspace;  // Shared by all: what a call leaves in it must not matter.
  int late = 0;
  for (int trial = 0; trial < 600; ++trial) {
    const auto kind = static_cast<ScheduleKind>(pick(random, 0, 2));
    const bool interleaved = kind == ScheduleKind::interleaved;
    // Every number of stages around those of one, two and three vectors.
    const int pp = static_cast<int>(pick(random, interleaved ? 3 : 1, trial % 10 == 0 ? 40 : 18));
    const int vp = interleaved ? static_cast<int>(pick(random, 2, 4)) : 1;
    const std::int64_t m =
        interleaved ? pp * pick(random, 1, 4) : pick(random, 1, std::int64_t{3} * pp);
    const Pipeline pipeline = random_chain(random, kind, pp, vp, m);
    const Evaluation expected = evaluate(pipeline, schedule_of(pipeline), Record::times);
    TimedPasses timed = passes_of(pipeline, workspace);
    std::vector<double> with_two_lanes;
    for (int lanes = 0; lanes <= static_cast<int>(widest_lanes()); ++lanes) {
      std::fill(timed.passes_end_s.begin(), timed.passes_end_s.end(), -1);
      time_in_waves(timed, static_cast<Lanes>(lanes), workspace.chain);
      for (std::size_t s = 0; s < static_cast<std::size_t>(pp); ++s) {
        const double end_s = expected.stages[s].passes_end_s;
        ASSERT_NEAR(timed.passes_end_s[s], end_s, 1e-12 * end_s)
            << "trial " << trial << " lanes " << lanes << " pp " << pp << " vp " << vp << " m "
            << m;
        const double wait_s = std::max(0.0, timed.ready_s[s] - timed.first_forward_end_s[s]);
        ASSERT_EQ(wait_s, expected.stages[s].parameter_wait_s) << "trial " << trial;
        late += wait_s > 0 ? 1 : 0;
      }
      if (lanes == 0) with_two_lanes = timed.passes_end_s;
      ASSERT_EQ(timed.passes_end_s, with_two_lanes) << "to the last bit, trial " << trial;
    }
  }
  EXPECT_GT(late, 500);
}

TEST(ChainWaves, DeepPipelinesOfManyMicroBatchesAgreeToo) {
  Random random(32);
  PipelineWorkspace workspace;
  for (const int pp : {24, 33, 70}) {
    for (const auto kind :
         {ScheduleKind::gpipe, ScheduleKind::one_f_one_b, ScheduleKind::interleaved}) {
      const int vp = kind == ScheduleKind::interleaved ? 3 : 1;
      const Pipeline pipeline = random_chain(random, kind, pp, vp, std::int64_t{8} * pp);
      const double time_s = pipeline_time_s(pipeline, workspace);
      EXPECT_EQ(time_s, evaluate(pipeline, schedule_of(pipeline), Record::times).iteration_time_s);
    }
  }
}

TEST(ChainWaves, TimesBeyondAllNumbersStayInfinite) {
  for (const auto kind :
       {ScheduleKind::gpipe, ScheduleKind::one_f_one_b, ScheduleKind::interleaved}) {
    const int vp = kind == ScheduleKind::interleaved ? 2 : 1;
    Pipeline pipeline = even_chain(kind, 16, vp, 16, {1, 2});
    pipeline.forward_s[3] = std::numeric_limits<double>::max();
    PipelineWorkspace workspace;
    EXPECT_EQ(pipeline_time_s(pipeline, workspace), std::numeric_limits<double>::infinity());
  }
}

TEST(ChainTime, ChainsThatTakeTurnsDoNotDisturbEachOther) {
  // More of them than a workspace remembers, in random order, some with the same passes.
  Random random(33);
  std::vector<Pipeline> pipelines;
  std::vector<double> expected_s;
  for (int i = 0; i < 40; ++i) {
    Pipeline pipeline = random_chain(random, ScheduleKind::one_f_one_b, 5, 1, 9);
    pipelines.push_back(pipeline);
    pipeline.sync[2].parameter_sync_s += 40;
    pipelines.push_back(pipeline);
    pipeline.sync[4].optimizer_s += 1;
    pipelines.push_back(pipeline);
  }
  for (const Pipeline& pipeline : pipelines) {
    PipelineWorkspace own;
    expected_s.push_back(pipeline_time_s(pipeline, own));
  }
  PipelineWorkspace shared;
  for (int call = 0; call < 5000; ++call) {
    const auto near = static_cast<std::int64_t>(call) * 100 / 5000;
    const auto i = static_cast<std::size_t>(pick(random, near, near + 19));
    ASSERT_EQ(pipeline_time_s(pipelines[i], shared), expected_s[i]) << "call " << call;
  }
}

}  // namespace
}  // namespace braid
