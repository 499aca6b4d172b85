#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/document.h"
#include "braid/plan/plan_json.h"
#include "braid/plan/stage_context.h"
#include "braid/plan/stage_load.h"
#include "braid/plan/stage_rounds.h"

#include "base/error_text.h"
#include "plan/heterogeneous_plan.h"
#include "report/plan_maker.h"

namespace braid {
namespace {

using test::draw;
using ::testing::HasSubstr;

Plan read_back(const std::string& text) {
  const Document document = Document::parse(text, Document::Syntax::json, "plan.json");
  return plan_from_json(document.root());
}

TEST(HeterogeneousStages, PlansReadBackEqual) {
  std::mt19937_64 random(1);
  for (int trial = 0; trial < 40; ++trial) {
    const Plan plan = test::heterogeneous_plan(random, trial % 2 == 1);
    EXPECT_EQ(read_back(to_text(to_json(plan))), plan);
    EXPECT_FALSE(is_uniform(plan));
  }
}

TEST(HeterogeneousStages, PlansWithoutFormsOfTheirOwnAreWrittenAsEver) {
  Parallelism p;
  p.pp = 2;
  const Plan plan = test::made_plan(p, 4);
  EXPECT_EQ(to_text(to_json(plan)).find("\"own\""), std::string::npos);
  EXPECT_TRUE(is_uniform(plan));
  EXPECT_EQ(form_of(plan, 1), p);
}

TEST(HeterogeneousStages, BadFormsAreErrors) {
  std::mt19937_64 random(2);
  const Plan plan = test::heterogeneous_plan(random);
  const auto message = [&](const auto& spoil) {
    Plan bad = plan;
    spoil(bad.stages.front());
    return error_text([&] { read_back(to_text(to_json(bad))); });
  };
  EXPECT_THAT(message([](Stage& s) { s.dp += 1; }), HasSubstr("dp x tp x cp"));
  EXPECT_THAT(message([](Stage& s) { s.own->micro_batch = 5; }), HasSubstr("global batch"));
  EXPECT_THAT(message([](Stage& s) { s.own->micro_batch = 0; }), HasSubstr("micro_batch"));
  EXPECT_THAT(message([](Stage& s) { s.own->ep = 7; }), HasSubstr("ep does not divide"));
}

/// Bytes of each device for one micro-batch of the source, sample by sample and copy by copy.
struct Moved {
  std::vector<double> sent, received;
};

Moved moved_by_hand(double bytes, const Parallelism& from, const Parallelism& to) {
  Moved moved;
  moved.received.assign(static_cast<std::size_t>(to.dp * to.cp * to.tp), 0);
  const int samples = from.dp * from.micro_batch;
  for (int i = 0; i < samples; ++i) {
    for (int c = 0; c < to.cp; ++c) {
      for (int t = 0; t < to.tp; ++t) {
        const int device = (i % to.dp * to.cp + c) * to.tp + t;
        moved.received[static_cast<std::size_t>(device)] +=
            bytes / to.cp / (to.sequence_parallel ? to.tp : 1);
      }
    }
  }
  const double all = std::accumulate(moved.received.begin(), moved.received.end(), 0.0);
  const int senders = from.dp * from.cp * from.tp;
  moved.sent.assign(static_cast<std::size_t>(senders), all / senders);
  return moved;
}

TEST(HeterogeneousStages, FlowsCarryWhatTheBusiestDeviceOfTheLargerStageMoves) {
  std::mt19937_64 random(3);
  const auto form = [&random] {
    Parallelism p;
    p.dp = draw(random, 1, 4);
    p.cp = draw(random, 1, 3);
    p.tp = draw(random, 1, 4);
    p.micro_batch = draw(random, 1, 4);
    p.sequence_parallel = draw(random, 0, 1) == 0;
    return p;
  };
  for (int trial = 0; trial < 500; ++trial) {
    const Parallelism from = form();
    const Parallelism to = form();
    const Moved moved = moved_by_hand(1200, from, to);
    const auto& larger = moved.received.size() >= moved.sent.size() ? moved.received : moved.sent;
    EXPECT_NEAR(handover_bytes({0, 0, 1200}, from, to),
                *std::max_element(larger.begin(), larger.end()), 1e-9);
    // Between stages of one form it is what boundary_bytes says.
    EXPECT_NEAR(handover_bytes({0, 0, 1200}, from, from), boundary_bytes({0, 0, 1200}, from), 1e-9);
  }
}

/// A uniform plan, its stages told their forms one by one, is the same plan.
TEST(HeterogeneousStages, FormsThatAreAlikeCostWhatAUniformPlanDoes) {
  std::mt19937_64 random(4);
  for (int trial = 0; trial < 200; ++trial) {
    Parallelism p;
    constexpr int kPowers[] = {1, 2, 4};
    p.pp = draw(random, 1, 3);
    p.tp = kPowers[draw(random, 0, 1)];
    p.cp = kPowers[draw(random, 0, 1)];
    p.dp = kPowers[draw(random, 0, 2)];
    p.ep = p.dp;
    p.micro_batch = draw(random, 1, 2);
    p.num_micro_batches = draw(random, 1, 4);
    p.zero = static_cast<Zero>(draw(random, 0, 3));
    p.sequence_parallel = p.tp > 1;
    if (trial % 3 == 0) p.schedule = ScheduleKind::gpipe;
    const Plan plan = test::made_plan(p, draw(random, 3, 6));
    Plan told = plan;
    for (Stage& stage : told.stages) {
      stage.own = StageConfig{p.micro_batch, p.ep, p.sequence_parallel, p.zero, false, false, {}};
    }
    const auto loads = stage_loads(plan);
    const auto told_loads = stage_loads(told);
    for (std::size_t s = 0; s < loads.size(); ++s) {
      EXPECT_EQ(loads[s].sync, told_loads[s].sync) << trial;
      EXPECT_EQ(loads[s].chunks[0].forward_s(), told_loads[s].chunks[0].forward_s());
      EXPECT_EQ(loads[s].chunks[0].backward_s(), told_loads[s].chunks[0].backward_s());
    }
    EXPECT_EQ(memory_of_stages(plan), memory_of_stages(told));
    const auto edges = edge_loads(plan);
    const auto told_edges = edge_loads(told);
    ASSERT_EQ(edges.size(), told_edges.size());
    for (std::size_t e = 0; e < edges.size(); ++e) {
      EXPECT_DOUBLE_EQ(edges[e].transfer_s, told_edges[e].transfer_s) << trial;
      EXPECT_LT(told_edges[e].backward_transfer_s, 0);
    }
  }
}

TEST(HeterogeneousStages, WarmUpIsThePlansDepthAndPipersBound) {
  // A chain of d = 3, 1, 2 replicas of one sample each: ⌈6/3⌉, ⌈3/1⌉, ⌈2/2⌉.
  const std::vector<StageRounds> rounds = {{3, 4}, {1, 12}, {2, 6}};
  const std::vector<ChunkEdge> edges = {{0, 0, 1, 0, 0}, {1, 0, 2, 0, 0}};
  EXPECT_EQ(forwards_first(ScheduleKind::one_f_one_b, rounds, edges),
            (std::vector<std::int64_t>{2, 3, 1}));
  EXPECT_EQ(forwards_first(ScheduleKind::gpipe, rounds, edges),
            (std::vector<std::int64_t>{4, 12, 6}));
  // Rounds that do not nest: 4, 3 and 1 samples. ⌈8/4⌉ = 2 would have stage 1 wait for a third
  // round of stage 0 before the second backward pass that stage 0 waits for.
  const std::vector<StageRounds> odd = {{4, 3}, {3, 4}, {1, 12}};
  EXPECT_EQ(forwards_first(ScheduleKind::one_f_one_b, odd, edges),
            (std::vector<std::int64_t>{3, 2, 1}));
}

}  // namespace
}  // namespace braid
