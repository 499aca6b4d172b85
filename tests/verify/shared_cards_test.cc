#include <random>

#include <gtest/gtest.h>

#include "braid/plan/stage_load.h"
#include "braid/verify/stage_work.h"

#include "base/pick.h"

namespace braid {
namespace {

using test::pick;

/// The rule that plans are timed by, against what verify finds node by node.
TEST(SharedCards, AreSharedByAsManyStagesAsAPlanIsTimedWith) {
  std::mt19937_64 random(7);
  int shared = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    Plan plan;
    Parallelism& p = plan.parallel;
    p.tp = pick(random, 1, 2);
    p.cp = pick(random, 1, 2);
    p.dp = pick(random, 1, 4);
    p.pp = pick(random, 1, 20);
    p.schedule = static_cast<ScheduleKind>(pick(random, 0, 2));
    if (p.schedule == ScheduleKind::interleaved) p.vp = pick(random, 1, 3);
    if (pick(random, 0, 1) == 0) p.order = {Axis::tp, Axis::cp, Axis::pp, Axis::dp};
    const std::int64_t per_node = pick(random, 1, 12);
    plan.system.groups.resize(1);
    plan.system.groups[0].devices_per_node = per_node;
    plan.system.device_count = p.devices();
    const int senders = stages_sending(p, plan.system);
    ASSERT_EQ(stages_sending_at_once(plan), senders)
        << p.tp << ' ' << p.cp << ' ' << p.dp << ' ' << p.pp << ' ' << p.vp << ' ' << per_node;
    shared += senders == 2 ? 1 : 0;
  }
  EXPECT_GT(shared, 200);
}

}  // namespace
}  // namespace braid
