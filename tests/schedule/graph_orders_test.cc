#include "braid/schedule/graph_orders.h"

#include <algorithm>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/schedule/in_flight.h"

#include "schedule/stage_graphs.h"

namespace braid {
namespace {

using ::testing::HasSubstr;

std::vector<std::int32_t> own_devices(int p) {
  std::vector<std::int32_t> devices(static_cast<std::size_t>(p));
  std::iota(devices.begin(), devices.end(), 0);
  return devices;
}

StageGraph chain(int p, std::int64_t m) { return chain_graph(own_devices(p), m, 1); }

StageGraph interleaved_chain(int p, int v, std::int64_t m) {
  std::vector<std::int32_t> devices;
  for (int q = 0; q < p * v; ++q) devices.push_back(q % p);
  return chain_graph(devices, m, 1);
}

StageGraph v_chain(int p, std::int64_t m) {
  std::vector<std::int32_t> devices;
  for (int q = 0; q < 2 * p; ++q) devices.push_back(std::min(q, 2 * p - 1 - q));
  return chain_graph(devices, m, 1);
}

double peak_bytes(const OrderTiming& timing) {
  double peak = 0;
  for (const DeviceTiming& device : timing.devices) peak = std::max(peak, device.peak_bytes);
  return peak;
}

/// Most that a device idles between its first and its last pass.
double idle_s(const OrderTiming& timing) {
  double idle = 0;
  for (const DeviceTiming& device : timing.devices) {
    idle = std::max(idle, device.end_s - device.start_s - device.busy_s);
  }
  return idle;
}

TEST(GraphOrders, BubblesOfEqualStagesAreThoseOfTheLiterature) {
  for (int p = 1; p <= 6; ++p) {
    for (std::int64_t m = p; m <= 4 * p; ++m) {
      const TimedGraph timed = even_stages(chain(p, m), 1, 1.5, 0.5);
      const double ideal_s = 3.0 * static_cast<double>(m);
      const double bubble_s = 3.0 * (p - 1);
      // Bubble over ideal time (p-1)/m, over the whole (p-1)/(m+p-1).
      EXPECT_DOUBLE_EQ(time_order(timed, gpipe_order(timed.graph)).time_s, ideal_s + bubble_s);
      const OrderTiming flushed = time_order(timed, one_f_one_b_order(timed.graph));
      EXPECT_DOUBLE_EQ(flushed.time_s, ideal_s + bubble_s);
      EXPECT_EQ(peak_bytes(flushed), p);
      EXPECT_EQ(peak_bytes(time_order(timed, gpipe_order(timed.graph))), m);
      for (int v = 2; v <= 3 && m % p == 0; ++v) {
        const TimedGraph chunks = even_stages(interleaved_chain(p, v, m), 1, 1.5, 0.5);
        const OrderTiming timing = time_order(chunks, interleaved_order(chunks.graph));
        EXPECT_DOUBLE_EQ(timing.time_s, v * ideal_s + bubble_s) << p << ' ' << v << ' ' << m;
      }
    }
  }
}

TEST(GraphOrders, ZeroBubbleSchedulesHaveTheBubblesAndMemoryOfTheirPaper) {
  // Qi et al. 2024, Table 2: (p-1)(F+B-W) with p stashes, (p-1)(F+B-2W) with 2p-1.
  struct Times {
    double forward, input, weight;
  };
  for (const Times& t : {Times{1, 1, 1}, Times{1, 1.25, 0.75}, Times{2, 2, 1}}) {
    for (int p = 1; p <= 6; ++p) {
      for (std::int64_t m = 2 * p; m <= 5 * p; ++m) {
        const TimedGraph timed = even_stages(chain(p, m), t.forward, t.input, t.weight);
        const double work_s = (t.forward + t.input + t.weight) * static_cast<double>(m);
        const OrderTiming h1 = time_order(timed, zero_bubble_h1_order(timed.graph));
        EXPECT_DOUBLE_EQ(h1.time_s, work_s + (p - 1) * (t.forward + t.input - t.weight))
            << p << ' ' << m << ' ' << t.weight;
        EXPECT_EQ(peak_bytes(h1), p);
        const OrderTiming h2 = time_order(timed, zero_bubble_h2_order(timed.graph));
        EXPECT_DOUBLE_EQ(idle_s(h2), (p - 1) * (t.forward + t.input - 2 * t.weight))
            << p << ' ' << m << ' ' << t.weight;
        EXPECT_EQ(peak_bytes(h2), 2 * p - 1);
      }
    }
  }
}

TEST(GraphOrders, TheVShapedScheduleNeverIdlesInTheMemoryOf1F1B) {
  for (int p = 1; p <= 7; ++p) {
    for (std::int64_t m = 2 * p; m <= 5 * p; ++m) {
      const TimedGraph timed = even_stages(v_chain(p, m), 1, 1, 1);
      const OrderTiming timing = time_order(timed, zero_bubble_v_order(timed.graph));
      EXPECT_EQ(idle_s(timing), 0) << p << ' ' << m;
      EXPECT_EQ(peak_bytes(timing), 2 * p) << p << ' ' << m;
    }
  }
}

TEST(GraphOrders, TwoBufferedKeepsTwoVersionsAndNoBubbleBetweenRounds) {
  for (int p = 1; p <= 5; ++p) {
    for (std::int64_t m = p; m <= 2 * p; ++m) {
      StageGraph graph = chain(p, m);
      graph.rounds = 6;
      const TimedGraph timed = even_stages(graph, 1, 1, 1);
      const WorkOrder order = two_buffered_order(graph);
      const OrderTiming timing = time_order(timed, order);
      EXPECT_DOUBLE_EQ(timing.time_s, 3.0 * static_cast<double>(6 * m + p - 1));
      EXPECT_EQ(peak_bytes(timing), p);
      for (const std::vector<Work>& device : order.devices) {
        std::int64_t updates = 0;
        for (const Work& work : device) {
          if (work.kind == WorkKind::optimizer) ++updates;
          if (work.kind != WorkKind::forward && work.kind != WorkKind::backward) continue;
          // Round r runs on version max(0, r-1), made by the update of round r-2. It is there when
          // the round starts, and not yet overwritten by the one after the next when it ends.
          const std::int64_t version = std::max<std::int64_t>(0, work.index / m - 1);
          EXPECT_GE(updates, version);
          EXPECT_LE(updates, version + 1);
        }
      }
    }
  }
}

TEST(GraphOrders, KeepEveryRuleOnRandomGraphs) {
  Random random(11);
  for (int i = 0; i < 2500; ++i) {
    const TimedGraph timed = random_costs(random, random_stage_graph(random, {6, 6}));
    const StageGraph& graph = timed.graph;
    check_stage_graph(graph);
    const std::vector<int> depths = depths_of(graph);
    const int deepest = *std::max_element(depths.begin(), depths.end());
    const std::int64_t m = graph.micro_batches(0);
    const auto run = [&](const WorkOrder& order) {
      const OrderTiming timing = time_order(timed, order, true);
      EXPECT_EQ(broken_rule(timed, timing), "") << i;
      return timing;
    };
    const OrderTiming gpipe = run(gpipe_order(graph));
    const OrderTiming flushed = run(one_f_one_b_order(graph));
    const OrderTiming h1 = run(zero_bubble_h1_order(graph));
    const OrderTiming h2 = run(zero_bubble_h2_order(graph));
    for (std::size_t s = 0; s < depths.size(); ++s) {
      const std::int64_t d = depths[s];
      ASSERT_EQ(gpipe.peak_in_flight[s], m);
      ASSERT_EQ(flushed.peak_in_flight[s], std::min(m, d));
      ASSERT_EQ(h1.peak_in_flight[s], std::min(m, d));
      ASSERT_EQ(h2.peak_in_flight[s], std::min(m, 2 * d - 1));
      const StageCost& cost = timed.costs[s];
      const auto device = static_cast<std::size_t>(graph.stages[s].device);
      ASSERT_LE(h1.devices[device].peak_bytes, cost.fixed_bytes + deepest * cost.stash_bytes);
      ASSERT_LE(h2.devices[device].peak_bytes,
                cost.fixed_bytes + (2 * deepest - 1) * cost.stash_bytes);
    }
    if (m < deepest) continue;
    StageGraph rounds = graph;
    rounds.rounds = 3;
    const TimedGraph long_run{rounds, timed.costs, timed.transfer_s};
    ASSERT_EQ(broken_rule(long_run, time_order(long_run, two_buffered_order(rounds), true)), "");
  }
}

TEST(GraphOrders, KeepEveryRuleWithAnyMicroBatchSizesAndSharedDevices) {
  Random random(12);
  for (int i = 0; i < 3000; ++i) {
    const TimedGraph timed =
        random_costs(random, random_stage_graph(random, {6, 4, true, i % 2 == 0}));
    check_stage_graph(timed.graph);
    const OrderTiming gpipe = time_order(timed, gpipe_order(timed.graph), true);
    ASSERT_EQ(broken_rule(timed, gpipe), "") << i;
    if (i % 2 == 0) continue;
    const OrderTiming flushed = time_order(timed, one_f_one_b_order(timed.graph), true);
    ASSERT_EQ(broken_rule(timed, flushed), "") << i;
  }
}

TEST(GraphOrders, KFkBKeepsEveryRuleAndTheTablesMemory) {
  Random random(13);
  for (int i = 0; i < 3000; ++i) {
    const TimedGraph timed = random_costs(random, random_stage_graph(random, {6, 4, true}));
    const StageGraph& graph = timed.graph;
    std::vector<std::int64_t> k;
    for (std::size_t s = 0; s < graph.stages.size(); ++s) k.push_back(pick(random, 1, 4));
    const std::vector<std::int64_t> in_flight = table_in_flight(graph, k);
    const std::vector<std::int64_t> warm_ups = warm_ups_of(graph, k, in_flight);
    const OrderTiming timing = time_order(timed, k_f_k_b_order(graph, k, warm_ups), true);
    ASSERT_EQ(broken_rule(timed, timing), "") << i;
    for (std::size_t s = 0; s < k.size(); ++s) {
      ASSERT_EQ(timing.peak_in_flight[s], warm_ups[s]) << i;
    }
  }
}

TEST(GraphOrders, ChainSchedulesKeepEveryRuleWithAnyTimes) {
  Random random(14);
  for (int i = 0; i < 1500; ++i) {
    const int p = static_cast<int>(pick(random, 1, 4));
    const int v = static_cast<int>(pick(random, 1, 3));
    const std::int64_t m = p * pick(random, 1, 3);
    const TimedGraph chunks = random_costs(random, interleaved_chain(p, v, m));
    ASSERT_EQ(broken_rule(chunks, time_order(chunks, interleaved_order(chunks.graph), true)), "");
    const TimedGraph shape = random_costs(random, v_chain(p, pick(random, 1, 3 * p)));
    ASSERT_EQ(broken_rule(shape, time_order(shape, zero_bubble_v_order(shape.graph), true)), "");
  }
}

template <class Call>
std::string refusal(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(GraphOrders, RefuseWhatTheyAreNotDefinedForAndNameTheStage) {
  const StageGraph fork{4, 1, {{0, 1}, {1, 1}, {2, 1}}, {{0, 1}, {0, 2}}};
  EXPECT_THAT(refusal([&] { interleaved_order(fork); }),
              HasSubstr("stage 0 hands over to stage 2"));
  EXPECT_THAT(refusal([&] { zero_bubble_v_order(fork); }), HasSubstr("stage 0"));
  StageGraph gap = fork;
  gap.edges.pop_back();
  EXPECT_THAT(refusal([&] { interleaved_order(gap); }), HasSubstr("stage 1 does not hand over"));
  EXPECT_THAT(refusal([&] { interleaved_order(v_chain(2, 4)); }),
              HasSubstr("stage 2 is on device"));
  EXPECT_THAT(refusal([&] { zero_bubble_v_order(chain(4, 4)); }),
              HasSubstr("stage 2 is on device"));
  EXPECT_THAT(refusal([&] { zero_bubble_v_order(chain(1, 4)); }), HasSubstr("no mirror image"));
  EXPECT_THAT(refusal([&] { interleaved_order(interleaved_chain(2, 2, 3)); }),
              HasSubstr("2 devices do not divide"));
  EXPECT_THAT(refusal([&] {
                std::vector<std::int32_t> devices = {0, 1, 0};
                interleaved_order(chain_graph(devices, 4, 1));
              }),
              HasSubstr("stage 2 ends the chain"));
  StageGraph sizes = chain(3, 4);
  sizes.stages[2].micro_batch = 2;
  for (const auto& make :
       {zero_bubble_h1_order, zero_bubble_h2_order, two_buffered_order, interleaved_order}) {
    EXPECT_THAT(refusal([&] { make(sizes); }), HasSubstr("stage 2 has micro-batches of 2"));
  }
  StageGraph shared = chain(3, 4);
  shared.stages[2].device = 0;
  for (const auto& make :
       {one_f_one_b_order, zero_bubble_h1_order, zero_bubble_h2_order, two_buffered_order}) {
    EXPECT_THAT(refusal([&] { make(shared); }), HasSubstr("stage 2 shares device 0"));
  }
  StageGraph rounds = chain(3, 4);
  rounds.rounds = 2;
  for (const auto& make :
       {gpipe_order, one_f_one_b_order, zero_bubble_h1_order, interleaved_order}) {
    EXPECT_THAT(refusal([&] { make(rounds); }), HasSubstr("without a flush"));
  }
  EXPECT_THAT(refusal([&] { two_buffered_order(chain(3, 2)); }), HasSubstr("stage 0 is 3 stages"));
  const std::vector<std::int64_t> k = {2, 1, 1};
  EXPECT_THAT(refusal([&] {
                k_f_k_b_order(chain(3, 4), k, std::vector<std::int64_t>{1, 2, 1});
              }),
              HasSubstr("stage 0 has k = 2 with 1"));
  // Stage 1 runs two forward passes before its first backward pass, stage 0 offers one.
  const std::vector<std::int64_t> ones = {1, 1, 1};
  EXPECT_THAT(refusal([&] {
                k_f_k_b_order(chain(3, 4), ones, std::vector<std::int64_t>{1, 2, 1});
              }),
              HasSubstr("stage 0 waits for ever before the backward pass of micro-batch 0"));
}

}  // namespace
}  // namespace braid
