#include "braid/schedule/order_search.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/schedule/graph_orders.h"
#include "braid/schedule/greedy_order.h"

#include "schedule/stage_graphs.h"

namespace braid {
namespace {

/// Every order of every device, by trying all passes that could come next on any device, with the
/// stages' devices in turn so that each combination comes once.
double exhaustive_time_s(const TimedGraph& timed, const OrderSearch& limits) {
  const StageGraph& graph = timed.graph;
  double best_s = std::numeric_limits<double>::infinity();
  WorkOrder order;
  order.devices.resize(graph.stages.size());
  const std::function<void(std::size_t, std::int64_t, std::int64_t, std::int64_t)> go =
      [&](std::size_t s, std::int64_t f, std::int64_t b, std::int64_t w) {
        if (s == graph.stages.size()) {
          try {
            best_s = std::min(best_s, time_order(timed, order).time_s);
          } catch (const Error&) {
            // Waits for ever.
          }
          return;
        }
        const auto stage = static_cast<std::int32_t>(s);
        std::vector<Work>& device = order.devices[static_cast<std::size_t>(graph.stages[s].device)];
        const std::int64_t m = graph.micro_batches(s);
        if (b == m && (w == m || !limits.halves)) {
          device.push_back({WorkKind::reduce_gradients, stage, 0});
          device.push_back({WorkKind::optimizer, stage, 0});
          go(s + 1, 0, 0, 0);
          device.resize(device.size() - 2);
          return;
        }
        const auto step = [&](WorkKind kind, std::int64_t index, auto... next) {
          device.push_back({kind, stage, index});
          go(s, next...);
          device.pop_back();
        };
        const std::int64_t cap = limits.most_in_flight.empty() ? m : limits.most_in_flight[s];
        if (f < m && f - b < cap) step(WorkKind::forward, f, f + 1, b, w);
        if (b < f) {
          step(limits.halves ? WorkKind::input_gradient : WorkKind::backward, b, f, b + 1, w);
        }
        if (limits.halves && w < b) step(WorkKind::weight_gradient, w, f, b, w + 1);
      };
  go(0, 0, 0, 0);
  return best_s;
}

TEST(OrderSearch, EqualsTheBestOfAllOrders) {
  Random random(31);
  int impossible = 0;
  for (int i = 0; i < 120; ++i) {
    const bool halves = i % 3 == 0;
    StageGraph graph = random_stage_graph(random, {3, halves ? 2 : 3, false});
    if (i % 2 == 0) {
      for (GraphStage& stage : graph.stages) stage.micro_batch = 1;
      graph.batch = halves ? 2 : 4;
      graph.stages.back().micro_batch = 2;
    }
    if (graph.stages.size() > 2 && graph.batch > 3) graph.stages.pop_back();
    std::erase_if(graph.edges, [&](const StageEdge& edge) {
      return std::max(edge.source, edge.target) >= static_cast<int>(graph.stages.size());
    });
    for (std::size_t s = 0; s < graph.stages.size(); ++s) {
      graph.stages[s].device = static_cast<std::int32_t>(s);
    }
    const TimedGraph timed = random_costs(random, graph);
    OrderSearch limits;
    limits.halves = halves;
    if (i % 4 == 0) limits.most_in_flight.assign(graph.stages.size(), 1);
    const OrderSearchResult found = search_order(timed, limits);
    ASSERT_TRUE(found.proved);
    const double best_s = exhaustive_time_s(timed, limits);
    ASSERT_EQ(found.order.has_value(), best_s < std::numeric_limits<double>::infinity()) << i;
    impossible += found.order ? 0 : 1;
    if (!found.order) continue;
    ASSERT_EQ(found.time_s, best_s) << i;
    ASSERT_EQ(found.bound_s, best_s);
    const OrderTiming timing = time_order(timed, *found.order, true);
    ASSERT_EQ(timing.time_s, found.time_s);
    ASSERT_EQ(broken_rule(timed, timing), "");
    for (std::size_t s = 0; s < limits.most_in_flight.size(); ++s) {
      ASSERT_LE(timing.peak_in_flight[s], limits.most_in_flight[s]);
    }
  }
  EXPECT_GT(impossible, 0);
}

TEST(OrderSearch, ProvesOneFOneBBestForEqualStages) {
  for (int p = 1; p <= 4; ++p) {
    std::vector<std::int32_t> devices(static_cast<std::size_t>(p));
    std::iota(devices.begin(), devices.end(), 0);
    const TimedGraph timed = even_stages(chain_graph(devices, 6, 1), 1, 1, 1);
    const OrderSearchResult found = search_order(timed, {});
    EXPECT_TRUE(found.proved);
    EXPECT_EQ(found.time_s, 3 * (6 + p - 1));
  }
}

TEST(OrderSearch, ProvesZeroBubbleH1BestInTheMemoryOf1F1B) {
  const TimedGraph timed = even_stages(chain_graph(std::vector{0, 1, 2}, 4, 1), 1, 1, 1);
  OrderSearch limits;
  limits.halves = true;
  limits.most_in_flight = {3, 2, 1};
  const OrderSearchResult found = search_order(timed, limits);
  EXPECT_TRUE(found.proved);
  EXPECT_EQ(found.time_s, time_order(timed, zero_bubble_h1_order(timed.graph)).time_s);
}

TEST(OrderSearch, BoundsWhatItCannotFinishAndIsNeverWorseThanKnownSchedules) {
  Random random(32);
  for (int i = 0; i < 60; ++i) {
    const TimedGraph timed = random_costs(random, random_stage_graph(random, {5, 6, false}));
    OrderSearch limits;
    limits.most_states = 300;
    const OrderSearchResult found = search_order(timed, limits);
    ASSERT_TRUE(found.order);
    EXPECT_LE(found.bound_s, found.time_s * (1 + 1e-12));
    EXPECT_LE(found.time_s, time_order(timed, one_f_one_b_order(timed.graph)).time_s);
    EXPECT_LE(found.time_s, time_order(timed, greedy_order(timed)).time_s);
    EXPECT_EQ(time_order(timed, *found.order).time_s, found.time_s);
  }
}

TEST(OrderSearch, FindsShorterSchedulesThanTheGreedyOneWhereStagesDiffer) {
  Random random(99);
  int shorter = 0;
  for (int i = 0; i < 150; ++i) {
    TimedGraph timed = random_costs(random, random_stage_graph(random, {4, 5, false}));
    const OrderSearchResult found = search_order(timed, {});
    if (found.time_s < time_order(timed, greedy_order(timed)).time_s) ++shorter;
  }
  EXPECT_GT(shorter, 0);
}

TEST(OrderSearch, RefusesSharedDevices) {
  EXPECT_THROW(search_order(timeless(chain_graph(std::vector{0, 0}, 2, 1)), {}), Error);
}

}  // namespace
}  // namespace braid
