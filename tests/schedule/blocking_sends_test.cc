#include <gtest/gtest.h>

#include "braid/schedule/pipeline_time.h"
#include "braid/schedule/timeline.h"

#include "schedule/instances.h"
#include "schedule/plans.h"

namespace braid {
namespace {

constexpr double kSendSlack_s = 1e-9;

double iteration_s(const Pipeline& pipeline) {
  PipelineWorkspace workspace;
  return pipeline_time_s(pipeline, workspace);
}

double held_time_s(Pipeline pipeline) {
  hold_for_sends(pipeline);
  return iteration_s(pipeline);
}

TEST(BlockingSends, AreNeverFasterAndCostAChainOfOneMicroBatchNothing) {
  Random random(7);
  int slower = 0;
  for (int trial = 0; trial < 1000; ++trial) {
    const int pp = static_cast<int>(pick(random, 1, 5));
    const std::int64_t m = pick(random, 1, 8);
    Pipeline pipeline = random_chain(random, ScheduleKind::one_f_one_b, pp, 1, m);
    if (trial % 2 == 0) pipeline.schedule = ScheduleKind::gpipe;
    // Sums of gradients go on beside a send at the end of the last pass.
    pipeline.sync.assign(pipeline.sync.size(), {});
    const double beside_s = iteration_s(pipeline);
    EXPECT_GE(held_time_s(pipeline), beside_s - kSendSlack_s);
    if (held_time_s(pipeline) > beside_s + kSendSlack_s) ++slower;
    pipeline.num_micro_batches = 1;
    EXPECT_NEAR(held_time_s(pipeline), iteration_s(pipeline), kSendSlack_s);
  }
  EXPECT_GT(slower, 200);
}

/// Of three stages the one in the middle sends both ways: of many micro-batches each takes both
/// passes and both transfers.
TEST(BlockingSends, TakeTheStageThatSendsMost) {
  const Pipeline chain = even_chain(ScheduleKind::one_f_one_b, 3, 1, 64, {1, 2, 0.5});
  EXPECT_GE(held_time_s(chain), 64 * (1 + 2 + 2 * 0.5));
  EXPECT_LE(held_time_s(chain), 68 * (1 + 2 + 2 * 0.5));
}

TEST(BlockingSends, LeaveChunksOfOneStageAlone) {
  const Pipeline chain = even_chain(ScheduleKind::interleaved, 1, 3, 4, {1, 2, 0.5});
  EXPECT_EQ(held_time_s(chain), iteration_s(chain));
}

TEST(BlockingSends, CountAsTransfers) {
  Plan plan = small_plan(ScheduleKind::one_f_one_b, 3, 1, 8);
  const double still_s = measure(plan).iteration_time_s;
  plan.trainer.does.blocking_sends = true;
  EXPECT_EQ(measure(plan).iteration_time_s, still_s);
  set_boundary_bytes(plan, 1e9);
  const Metrics within = measure(plan);
  plan.trainer.does.blocking_sends = false;
  const Metrics beside = measure(plan);
  EXPECT_GT(beside.pp_comm_s, 0);
  EXPECT_GT(within.pp_comm_s, beside.pp_comm_s);
  EXPECT_NEAR(within.pp_comm_s, within.iteration_time_s - still_s, kSendSlack_s);
  EXPECT_EQ(within.compute_s, beside.compute_s);
  EXPECT_NEAR(within.bubble_s, beside.bubble_s, kSendSlack_s);
}

}  // namespace
}  // namespace braid
