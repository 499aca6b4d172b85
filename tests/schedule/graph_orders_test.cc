#include "braid/schedule/graph_orders.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/schedule/greedy_order.h"
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

/// Graphs that each generator is tried on.
constexpr int kRandomGraphs = 10'000;

/// Runs one generator's schedules for random graphs with random times and holds them against every
/// rule (dependencies, one thing at a time, memory as it is counted). `make` returns nothing for a
/// graph that the schedule is not for; `check` looks at the run of one that it is.
template <class Draw, class Make, class Check>
void expect_rules_kept(unsigned seed, const Draw& draw, const Make& make, const Check& check) {
  Random random(seed);
  for (int kept = 0; kept < kRandomGraphs;) {
    const TimedGraph timed = random_costs(random, draw(random));
    check_stage_graph(timed.graph);
    const std::optional<WorkOrder> order = make(timed);
    if (!order) continue;
    const OrderTiming timing = time_order(timed, *order, true);
    ASSERT_EQ(broken_rule(timed, timing), "") << kept;
    check(timed, timing);
    ++kept;
  }
}

/// Samples of one size, a device for each stage.
StageGraph draw_plain(Random& random) { return random_stage_graph(random, {6, 6}); }
/// Stages with sizes of their own.
StageGraph draw_sizes(Random& random) { return random_stage_graph(random, {6, 4, true}); }
/// And several on one device, now and then.
StageGraph draw_any(Random& random) {
  return random_stage_graph(random, {6, 4, true, pick(random, 0, 1) == 0});
}

/// Stashes of a stage of some depth, and what its device's memory may reach.
template <class Most>
auto stashes_at_most(const Most& most) {
  return [most](const TimedGraph& timed, const OrderTiming& timing) {
    const std::vector<int> depths = depths_of(timed.graph);
    const std::int64_t deepest = *std::max_element(depths.begin(), depths.end());
    for (std::size_t s = 0; s < depths.size(); ++s) {
      ASSERT_EQ(timing.peak_in_flight[s], std::min(timed.graph.micro_batches(s), most(depths[s])));
      const StageCost& cost = timed.costs[s];
      const auto device = static_cast<std::size_t>(timed.graph.stages[s].device);
      ASSERT_LE(timing.devices[device].peak_bytes,
                cost.fixed_bytes + static_cast<double>(most(deepest)) * cost.stash_bytes);
    }
  };
}

const auto kNoMore = [](const TimedGraph&, const OrderTiming&) {};

TEST(GraphOrders, GPipeKeepsEveryRuleOnRandomGraphs) {
  expect_rules_kept(
      11, draw_any, [](const TimedGraph& timed) { return std::optional(gpipe_order(timed.graph)); },
      [](const TimedGraph& timed, const OrderTiming& timing) {
        for (std::size_t s = 0; s < timed.costs.size(); ++s) {
          ASSERT_EQ(timing.peak_in_flight[s], timed.graph.micro_batches(s));
        }
      });
}

TEST(GraphOrders, OneFOneBKeepsEveryRuleOnRandomGraphs) {
  const auto as_deep = stashes_at_most([](std::int64_t depth) { return depth; });
  expect_rules_kept(
      12, draw_sizes,
      [](const TimedGraph& timed) { return std::optional(one_f_one_b_order(timed.graph)); },
      [&](const TimedGraph& timed, const OrderTiming& timing) {
        const std::vector<GraphStage>& stages = timed.graph.stages;
        const bool alike = std::all_of(stages.begin(), stages.end(), [&](const GraphStage& stage) {
          return stage.micro_batch == stages.front().micro_batch;
        });
        if (alike) as_deep(timed, timing);
      });
}

TEST(GraphOrders, ZeroBubbleH1KeepsEveryRuleOnRandomGraphs) {
  expect_rules_kept(
      13, draw_plain,
      [](const TimedGraph& timed) { return std::optional(zero_bubble_h1_order(timed.graph)); },
      stashes_at_most([](std::int64_t depth) { return depth; }));
}

TEST(GraphOrders, ZeroBubbleH2KeepsEveryRuleOnRandomGraphs) {
  expect_rules_kept(
      14, draw_plain,
      [](const TimedGraph& timed) { return std::optional(zero_bubble_h2_order(timed.graph)); },
      stashes_at_most([](std::int64_t depth) { return 2 * depth - 1; }));
}

TEST(GraphOrders, TwoBufferedKeepsEveryRuleOnRandomGraphs) {
  const auto draw = [](Random& random) {
    StageGraph graph = random_stage_graph(random, {4, 6});
    graph.rounds = pick(random, 1, 3);
    return graph;
  };
  const auto make = [](const TimedGraph& timed) -> std::optional<WorkOrder> {
    const std::vector<int> depths = depths_of(timed.graph);
    const int deepest = *std::max_element(depths.begin(), depths.end());
    if (timed.graph.round_micro_batches(0) < deepest) return std::nullopt;
    return two_buffered_order(timed.graph);
  };
  expect_rules_kept(15, draw, make, kNoMore);
}

/// Where sizes and k of neighbours differ, Table 3.2's warm-up is now and then too short for the
/// schedule to finish: it is refused then. The fewest warm-up passes that lose no time never are.
TEST(GraphOrders, KFkBKeepsEveryRuleAndTheTablesMemory) {
  Random random(15);
  std::vector<std::int64_t> warm_ups;
  int refused = 0;
  const auto make = [&](const TimedGraph& timed) -> std::optional<WorkOrder> {
    std::vector<std::int64_t> k;
    for (std::size_t s = 0; s < timed.graph.stages.size(); ++s) k.push_back(pick(random, 1, 4));
    warm_ups = warm_ups_of(timed.graph, k, table_in_flight(timed.graph, k));
    try {
      return k_f_k_b_order(timed.graph, k, warm_ups);
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("waits for ever"));
      ++refused;
      warm_ups = least_warm_ups(timed, k);
      return k_f_k_b_order(timed.graph, k, warm_ups);
    }
  };
  expect_rules_kept(25, draw_sizes, make, [&](const TimedGraph&, const OrderTiming& timing) {
    ASSERT_EQ(timing.peak_in_flight, warm_ups);
  });
  EXPECT_EQ(refused, 1);
}

TEST(GraphOrders, KFkBWithOneKFinishesOnRandomGraphs) {
  Random random(17);
  expect_rules_kept(
      27, draw_sizes,
      [&](const TimedGraph& timed) {
        const std::vector<std::int64_t> k(timed.costs.size(), pick(random, 1, 4));
        return std::optional(k_f_k_b_order(
            timed.graph, k, warm_ups_of(timed.graph, k, table_in_flight(timed.graph, k))));
      },
      kNoMore);
}

StageGraph draw_small(Random& random) { return random_stage_graph(random, {3, 2, true}); }
StageGraph draw_several(Random& random) { return random_stage_graph(random, {4, 3, true}); }

TEST(GraphOrders, KFkBWithLeastWarmUpsFinishesWhateverTheStagesK) {
  Random random(18);
  std::vector<std::int64_t> warm_ups;
  expect_rules_kept(
      18, draw_several,
      [&](const TimedGraph& timed) {
        std::vector<std::int64_t> k;
        for (std::size_t s = 0; s < timed.costs.size(); ++s) k.push_back(pick(random, 1, 4));
        warm_ups = least_warm_ups(timed, k);
        return std::optional(k_f_k_b_order(timed.graph, k, warm_ups));
      },
      [&](const TimedGraph&, const OrderTiming& timing) {
        ASSERT_EQ(timing.peak_in_flight, warm_ups);
      });
}

TEST(GraphOrders, GreedyKeepsEveryRuleOnRandomGraphs) {
  expect_rules_kept(
      19, draw_small, [](const TimedGraph& timed) { return std::optional(greedy_order(timed)); },
      kNoMore);
}

TEST(GraphOrders, InterleavedKeepsEveryRuleWithAnyTimes) {
  const auto draw = [](Random& random) {
    const int p = static_cast<int>(pick(random, 1, 3));
    const int v = static_cast<int>(pick(random, 1, 3));
    return interleaved_chain(p, v, p * pick(random, 1, 2));
  };
  expect_rules_kept(
      20, draw,
      [](const TimedGraph& timed) { return std::optional(interleaved_order(timed.graph)); },
      kNoMore);
}

TEST(GraphOrders, TheVShapedScheduleKeepsEveryRuleWithAnyTimes) {
  const auto draw = [](Random& random) {
    const int p = static_cast<int>(pick(random, 1, 3));
    return v_chain(p, pick(random, 1, 3 * p));
  };
  expect_rules_kept(
      21, draw,
      [](const TimedGraph& timed) { return std::optional(zero_bubble_v_order(timed.graph)); },
      kNoMore);
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
              HasSubstr("stage 1 hands over to stage 3"));
  EXPECT_THAT(refusal([&] { zero_bubble_v_order(fork); }), HasSubstr("stage 1"));
  StageGraph gap = fork;
  gap.edges.pop_back();
  EXPECT_THAT(refusal([&] { interleaved_order(gap); }), HasSubstr("stage 2 does not hand over"));
  EXPECT_THAT(refusal([&] { interleaved_order(v_chain(2, 4)); }),
              HasSubstr("stage 3 is on device"));
  EXPECT_THAT(refusal([&] { zero_bubble_v_order(chain(4, 4)); }),
              HasSubstr("stage 3 is on device"));
  EXPECT_THAT(refusal([&] { zero_bubble_v_order(chain(1, 4)); }), HasSubstr("no mirror image"));
  EXPECT_THAT(refusal([&] { interleaved_order(interleaved_chain(2, 2, 3)); }),
              HasSubstr("2 devices do not divide"));
  EXPECT_THAT(refusal([&] {
                std::vector<std::int32_t> devices = {0, 1, 0};
                interleaved_order(chain_graph(devices, 4, 1));
              }),
              HasSubstr("stage 3 ends the chain"));
  StageGraph sizes = chain(3, 4);
  sizes.stages[2].micro_batch = 2;
  for (const auto& make :
       {zero_bubble_h1_order, zero_bubble_h2_order, two_buffered_order, interleaved_order}) {
    EXPECT_THAT(refusal([&] { make(sizes); }), HasSubstr("stage 3 has micro-batches of 2"));
  }
  StageGraph shared = chain(3, 4);
  shared.stages[2].device = 0;
  for (const auto& make :
       {one_f_one_b_order, zero_bubble_h1_order, zero_bubble_h2_order, two_buffered_order}) {
    EXPECT_THAT(refusal([&] { make(shared); }), HasSubstr("stage 3 shares device 0"));
  }
  StageGraph rounds = chain(3, 4);
  rounds.rounds = 2;
  for (const auto& make :
       {gpipe_order, one_f_one_b_order, zero_bubble_h1_order, interleaved_order}) {
    EXPECT_THAT(refusal([&] { make(rounds); }), HasSubstr("without a flush"));
  }
  EXPECT_THAT(refusal([&] { two_buffered_order(chain(3, 2)); }), HasSubstr("stage 1 is 3 stages"));
  const std::vector<std::int64_t> k = {2, 1, 1};
  EXPECT_THAT(refusal([&] {
                k_f_k_b_order(chain(3, 4), k, std::vector<std::int64_t>{1, 2, 1});
              }),
              HasSubstr("stage 1 has k = 2 with 1"));
  // Stage 1 runs two forward passes before its first backward pass, stage 0 offers one.
  const std::vector<std::int64_t> ones = {1, 1, 1};
  EXPECT_THAT(refusal([&] {
                k_f_k_b_order(chain(3, 4), ones, std::vector<std::int64_t>{1, 2, 1});
              }),
              HasSubstr("stage 1 waits for ever before the backward pass of micro-batch 0"));
}

}  // namespace
}  // namespace braid
