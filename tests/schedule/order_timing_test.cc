#include "braid/schedule/order_timing.h"

#include <algorithm>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/error.h"

#include "schedule/stage_graphs.h"

namespace braid {
namespace {

using ::testing::HasSubstr;

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(OrderTiming, EqualsRepeatedRaisingOnRandomGraphsAndOrders) {
  Random random(1);
  for (int i = 0; i < 1500; ++i) {
    StageGraph graph = random_stage_graph(random, {5, 4, i % 2 == 0, i % 3 == 0});
    graph.rounds = pick(random, 1, 2);
    const TimedGraph timed = random_costs(random, graph);
    const WorkOrder order = random_order(random, graph, pick(random, 0, 1) == 1);
    const OrderTiming timing = time_order(timed, order, true);
    ASSERT_EQ(timing.time_s, relaxed_time_s(timed, order)) << i;
    ASSERT_EQ(broken_rule(timed, timing), "") << i;
  }
}

/// Parameters that first passes wait for, and stashes of which a part goes to the host.
TEST(OrderTiming, FirstPassesWaitForParametersAndTwoStashesAreOnTheirWay) {
  Random random(4);
  int later = 0;
  for (int i = 0; i < 600; ++i) {
    StageGraph graph = random_stage_graph(random, {5, 4, i % 2 == 0, i % 3 == 0});
    TimedGraph timed = random_costs(random, graph);
    const WorkOrder order = random_order(random, graph, i % 4 == 0);
    const double before_s = time_order(timed, order).time_s;
    for (StageCost& cost : timed.costs) {
      cost.parameters_s = pick_time(random, 0, 60);
      cost.offloaded_bytes = static_cast<double>(pick(random, 0, 10));
    }
    const OrderTiming timing = time_order(timed, order, true);
    ASSERT_EQ(timing.time_s, relaxed_time_s(timed, order)) << i;
    ASSERT_EQ(broken_rule(timed, timing), "") << i;
    ASSERT_GE(timing.time_s, before_s);
    later += timing.time_s > before_s ? 1 : 0;
  }
  EXPECT_GT(later, 200);
}

TEST(OrderTiming, RefusesExactlyWhatCanNeverFinish) {
  Random random(2);
  int stuck = 0;
  for (int i = 0; i < 1500; ++i) {
    const StageGraph graph = random_stage_graph(random, {4, 4, i % 2 == 0, i % 3 == 0});
    const TimedGraph timed = random_costs(random, graph);
    WorkOrder order = random_order(random, graph, false);
    // Swaps neighbours of different stages or kinds, which leaves every stage's passes in turn.
    for (std::vector<Work>& device : order.devices) {
      for (std::int64_t n = pick(random, 0, 6); n > 0 && device.size() > 1; --n) {
        const auto p =
            static_cast<std::size_t>(pick(random, 0, static_cast<std::int64_t>(device.size()) - 2));
        const Work& a = device[p];
        const Work& b = device[p + 1];
        const bool apart =
            a.stage != b.stage ||
            (a.kind == WorkKind::forward && b.kind == WorkKind::backward && a.index != b.index) ||
            (a.kind == WorkKind::backward && b.kind == WorkKind::forward);
        if (apart) std::swap(device[p], device[p + 1]);
      }
    }
    const double relaxed_s = relaxed_time_s(timed, order);
    if (relaxed_s < 0) {
      ++stuck;
      ASSERT_THAT(message_of([&] { time_order(timed, order); }), HasSubstr("waits for ever"));
    } else {
      ASSERT_EQ(time_order(timed, order).time_s, relaxed_s);
    }
  }
  EXPECT_GT(stuck, 100);
}

TEST(OrderTiming, LengtheningAnythingNeverShortensTheIteration) {
  Random random(3);
  for (int i = 0; i < 300; ++i) {
    const StageGraph graph = random_stage_graph(random, {5, 4, true, i % 2 == 0});
    TimedGraph timed = random_costs(random, graph);
    const WorkOrder order = random_order(random, graph, true);
    const double before_s = time_order(timed, order).time_s;
    const auto s = static_cast<std::size_t>(
        pick(random, 0, static_cast<std::int64_t>(graph.stages.size()) - 1));
    (pick(random, 0, 1) == 0 ? timed.costs[s].forward_s : timed.costs[s].input_gradient_s) += 1;
    for (double& time_s : timed.transfer_s) time_s += 0.125;
    ASSERT_GE(time_order(timed, order).time_s, before_s);
  }
}

TEST(OrderTiming, ConsumersWaitForThePartsThatTheyNeedAndNoMore) {
  // Stage 0 has micro-batches of 1, stage 1 of 2, stage 2 of 1 sample.
  StageGraph graph{4, 1, {{0, 1}, {1, 2}, {2, 1}}, {{0, 1}, {1, 2}}};
  TimedGraph timed = timeless(graph);
  for (StageCost& cost : timed.costs) cost.forward_s = 1;
  timed.transfer_s = {0.25, 0.5};
  WorkOrder order;
  for (std::int32_t s = 0; s < 3; ++s) {
    order.devices.emplace_back();
    for (const WorkKind kind : {WorkKind::forward, WorkKind::backward}) {
      for (std::int64_t k = 0; k < graph.micro_batches(static_cast<std::size_t>(s)); ++k) {
        order.devices.back().push_back({kind, s, k});
      }
    }
  }
  const OrderTiming timing = time_order(timed, order, true);
  const auto starts = [&](std::size_t s, std::size_t count) {
    std::vector<double> result;
    for (std::size_t k = 0; k < count; ++k) result.push_back(timing.work[s][k].start_s);
    return result;
  };
  EXPECT_EQ(starts(0, 4), (std::vector<double>{0, 1, 2, 3}));
  // Samples 0 and 1 are there at 2.25; the two parts of a result follow each other on the link.
  EXPECT_EQ(starts(1, 2), (std::vector<double>{2.25, 4.25}));
  EXPECT_EQ(starts(2, 4), (std::vector<double>{3.75, 4.75, 5.75, 6.75}));
}

TEST(OrderTiming, ReductionsRunBesideTheComputeAndOptimizersWaitForThem) {
  StageGraph graph{1, 1, {{0, 1}, {0, 1}}, {{0, 1}}};
  TimedGraph timed = timeless(graph);
  timed.costs[0] = {1, 2, 0, 5, 1, 0, 0, 0};
  timed.costs[1] = {1, 2, 0, 4, 1, 0, 0, 0};
  const WorkOrder order{{{{WorkKind::forward, 0, 0},
                          {WorkKind::forward, 1, 0},
                          {WorkKind::backward, 1, 0},
                          {WorkKind::reduce_gradients, 1, 0},
                          {WorkKind::backward, 0, 0},
                          {WorkKind::reduce_gradients, 0, 0},
                          {WorkKind::optimizer, 1, 0},
                          {WorkKind::optimizer, 0, 0}}}};
  // Passes to 6; stage 1 reduces from 4 to 8 beside stage 0's backward pass, stage 0 from 8 to 13.
  EXPECT_EQ(time_order(timed, order).time_s, 14);
}

TEST(StageGraph, BadGraphsAreRefusedInOneLineThatNamesTheStage) {
  const StageGraph good{4, 1, {{0, 2}, {1, 1}, {2, 4}}, {{0, 1}, {1, 2}}};
  check_stage_graph(good);
  const auto bad = [&](const std::function<void(StageGraph&)>& change) {
    StageGraph graph = good;
    change(graph);
    return message_of([&] { check_stage_graph(graph); });
  };
  EXPECT_THAT(bad([](StageGraph& g) { g.stages.clear(); }), HasSubstr("no stages"));
  EXPECT_THAT(bad([](StageGraph& g) { g.batch = 0; }), HasSubstr("no samples"));
  EXPECT_THAT(bad([](StageGraph& g) { g.rounds = -1; }), HasSubstr("no samples"));
  EXPECT_THAT(bad([](StageGraph& g) { g.stages[1].device = 3; }), HasSubstr("stage 2"));
  EXPECT_THAT(bad([](StageGraph& g) { g.stages[1].device = -1; }), HasSubstr("stage 2"));
  EXPECT_THAT(bad([](StageGraph& g) { g.stages[2].micro_batch = 3; }),
              HasSubstr("stage 3 has micro-batches of 3 samples, which do not divide"));
  EXPECT_THAT(bad([](StageGraph& g) { g.stages[0].micro_batch = 0; }), HasSubstr("stage 1"));
  EXPECT_THAT(bad([](StageGraph& g) {
                g.batch = 12;
                g.stages[1].micro_batch = 3;
              }),
              HasSubstr("stage 2 has micro-batches of 3 samples, stage 1 before it 2"));
  EXPECT_THAT(bad([](StageGraph& g) { g.edges.push_back({2, 0}); }), HasSubstr("stage"));
  EXPECT_THAT(bad([](StageGraph& g) { g.edges.push_back({2, 0}); }), HasSubstr("circle"));
  EXPECT_THAT(bad([](StageGraph& g) { g.edges.push_back({2, 2}); }), HasSubstr("stage 3"));
  EXPECT_THAT(bad([](StageGraph& g) { g.edges.push_back({2, 7}); }), HasSubstr("stage 8"));
  EXPECT_THAT(bad([](StageGraph& g) { g.edges.push_back({-1, 2}); }), HasSubstr("stage 0"));
  EXPECT_THAT(bad([](StageGraph& g) { g.rounds = INT64_MAX; }), HasSubstr("stage 1"));
  EXPECT_THAT(bad([](StageGraph& g) {
                g.batch = INT64_MAX;
                g.stages[0].micro_batch = 1;
              }),
              HasSubstr("stage 1"));
}

TEST(WorkOrder, WrongOrdersAreRefusedInOneLineThatNamesTheStage) {
  const StageGraph graph{2, 1, {{0, 1}, {1, 1}}, {{0, 1}}};
  const auto passes = [](std::int32_t s) {
    return std::vector<Work>{{WorkKind::forward, s, 0},          {WorkKind::forward, s, 1},
                             {WorkKind::backward, s, 0},         {WorkKind::backward, s, 1},
                             {WorkKind::reduce_gradients, s, 0}, {WorkKind::optimizer, s, 0}};
  };
  const WorkOrder good{{passes(0), passes(1)}};
  check_work_order(graph, good);
  const auto bad = [&](const std::function<void(std::vector<Work>&)>& change) {
    WorkOrder order = good;
    change(order.devices[1]);
    return message_of([&] { check_work_order(graph, order); });
  };
  EXPECT_THAT(bad([](auto& o) { std::swap(o[0], o[1]); }),
              HasSubstr("stage 2: the forward pass of "
                        "micro-batch 1 is out of turn"));
  EXPECT_THAT(bad([](auto& o) { std::swap(o[1], o[3]); }),
              HasSubstr("stage 2: the backward pass of micro-batch 1 is out of turn"));
  EXPECT_THAT(bad([](auto& o) { std::rotate(&o[0], &o[2], &o[3]); }),
              HasSubstr("stage 2: the backward pass of micro-batch 0 comes before its forward"));
  EXPECT_THAT(bad([](auto& o) { o.erase(o.begin() + 3, o.end()); }),
              HasSubstr("stage 2: the backward pass of micro-batch 1 is missing"));
  EXPECT_THAT(bad([](auto& o) { o[0].stage = 0; }), HasSubstr("stage 1"));
  EXPECT_THAT(bad([](auto& o) { o[0].stage = 5; }), HasSubstr("stage 6"));
  EXPECT_THAT(bad([](auto& o) { o[0].stage = -5; }), HasSubstr("stage -4"));
  EXPECT_THAT(bad([](auto& o) { o[0].index = -1; }), HasSubstr("out of turn"));
  EXPECT_THAT(bad([](auto& o) { o[3].kind = WorkKind::input_gradient; }),
              HasSubstr("not of the form of those before"));
  EXPECT_THAT(bad([](auto& o) { o[3].kind = WorkKind::weight_gradient; }), HasSubstr("stage 2"));
  EXPECT_THAT(bad([](auto& o) { std::swap(o[3], o[4]); }),
              HasSubstr("the reduction of round 0 comes before its gradients"));
  EXPECT_THAT(bad([](auto& o) { std::swap(o[4], o[5]); }), HasSubstr("comes after the optimizer"));
  EXPECT_THAT(bad([](auto& o) { o.push_back(o.back()); }), HasSubstr("out of turn"));
  EXPECT_THAT(message_of([&] { check_work_order(graph, {}); }), HasSubstr("0 devices"));
  // Stage 0 wants gradients of micro-batch 0 first, stage 1 both activations.
  WorkOrder stuck = good;
  std::swap(stuck.devices[0][1], stuck.devices[0][2]);
  EXPECT_THAT(message_of([&] { check_work_order(graph, stuck); }),
              HasSubstr("stage 1 waits for ever before the backward pass of micro-batch 0"));
}

}  // namespace
}  // namespace braid
