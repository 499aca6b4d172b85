#include "braid/schedule/in_flight.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/schedule/graph_orders.h"
#include "braid/schedule/greedy_order.h"
#include "braid/schedule/group_search.h"
#include "braid/schedule/sub_pipeline.h"

#include "schedule/stage_graphs.h"

namespace braid {
namespace {

/// Two or more stages in a chain whose passes take time by the sample.
TimedGraph chain_of(const std::vector<std::int64_t>& sizes, std::int64_t batch, double forward_s,
                    double backward_s) {
  StageGraph graph;
  graph.batch = batch;
  for (std::size_t s = 0; s < sizes.size(); ++s) {
    const auto stage = static_cast<std::int32_t>(s);
    graph.stages.push_back({stage, sizes[s]});
    if (s > 0) graph.edges.push_back({stage - 1, stage});
  }
  TimedGraph timed = timeless(graph);
  for (std::size_t s = 0; s < sizes.size(); ++s) {
    timed.costs[s].forward_s = forward_s * static_cast<double>(sizes[s]);
    timed.costs[s].input_gradient_s = backward_s * static_cast<double>(sizes[s]);
  }
  return timed;
}

double time_with(const TimedGraph& timed, const std::vector<std::int64_t>& k,
                 const std::vector<std::int64_t>& warm_ups) {
  return time_order(timed, k_f_k_b_order(timed.graph, k, warm_ups)).time_s;
}

struct TableErrors {
  int fewer_than_needed = 0, more_than_needed = 0;
};

/// The table's warm-up of the first of two stages against the fewest that give the shortest
/// iteration of all, over micro-batch sizes and k of 1, 2 and 4.
TableErrors table_errors(double forward_s, double backward_s) {
  TableErrors errors;
  const std::vector<std::int64_t> powers = {1, 2, 4};
  for (const std::int64_t bx : powers) {
    for (const std::int64_t kx : powers) {
      for (const std::int64_t by : powers) {
        for (const std::int64_t ky : powers) {
          const TimedGraph timed = chain_of({bx, by}, 64, forward_s, backward_s);
          const std::vector<std::int64_t> k = {kx, ky};
          const auto table = warm_ups_of(timed.graph, k, table_in_flight(timed.graph, k));
          const auto least = least_warm_ups(timed, k);
          double best_s = std::numeric_limits<double>::infinity();
          std::int64_t fewest = 0;
          for (std::int64_t warm_up = kx; warm_up <= 64 / bx; ++warm_up) {
            double time_s = 0;
            try {
              time_s = time_with(timed, k, {warm_up, ky});
            } catch (const std::exception&) {
              continue;
            }
            if (time_s >= best_s) continue;
            best_s = time_s;
            fewest = warm_up;
          }
          EXPECT_EQ(least, (std::vector<std::int64_t>{fewest, ky})) << bx << kx << by << ky;
          if (table[0] < fewest) ++errors.fewer_than_needed;
          if (table[0] > fewest) ++errors.more_than_needed;
        }
      }
    }
  }
  return errors;
}

TEST(InFlight, TheTableIsBestForEqualPassesAndNotForOthers) {
  const TableErrors equal = table_errors(1, 1);
  EXPECT_EQ(equal.fewer_than_needed, 0);
  EXPECT_EQ(equal.more_than_needed, 0);
  const TableErrors twice = table_errors(1, 2);
  EXPECT_EQ(twice.fewer_than_needed, 3);
  EXPECT_EQ(twice.more_than_needed, 0);
  const TableErrors half = table_errors(2, 1);
  EXPECT_EQ(half.fewer_than_needed, 0);
  EXPECT_EQ(half.more_than_needed, 4);
}

TEST(InFlight, SizesOf212AreThoseOfTheThesis) {
  // Jeon 2024, Figure 3.5: four warm-up passes of the first stage, three if the second groups two.
  const TimedGraph timed = chain_of({2, 1, 2}, 16, 1, 1);
  using Counts = std::vector<std::int64_t>;
  const Counts single = {1, 1, 1};
  const Counts grouped = {1, 2, 1};
  EXPECT_EQ(table_in_flight(timed.graph, single), (Counts{7, 4, 2}));
  EXPECT_EQ(table_in_flight(timed.graph, grouped), (Counts{6, 4, 2}));
  const Counts four = warm_ups_of(timed.graph, single, Counts{7, 4, 2});
  const Counts three = warm_ups_of(timed.graph, grouped, Counts{6, 4, 2});
  EXPECT_EQ(four, (Counts{4, 4, 1}));
  EXPECT_EQ(three, (Counts{3, 4, 1}));
  EXPECT_EQ(time_with(timed, single, four), time_with(timed, grouped, three));
}

TEST(InFlight, LeastWarmUpsOfEqualStagesAreTheDepthAndGrowWithTransfers) {
  TimedGraph timed = chain_of({1, 1, 1, 1}, 32, 1, 2);
  const std::vector<std::int64_t> k(4, 1);
  EXPECT_EQ(least_warm_ups(timed, k), (std::vector<std::int64_t>{4, 3, 2, 1}));
  // A hop of half a round both ways keeps one more micro-batch on its way.
  timed.transfer_s.assign(3, 1.5);
  EXPECT_EQ(least_warm_ups(timed, k), (std::vector<std::int64_t>{7, 5, 3, 1}));
}

TEST(InFlight, LeastWarmUpsAreOftenFewerThanTheTablesAndOnTheWholeFaster) {
  Random random(21);
  int fewer = 0;
  double least_s = 0;
  double table_s = 0;
  for (int i = 0; i < 300; ++i) {
    TimedGraph timed = random_costs(random, random_stage_graph(random, {4, 4, true}));
    timed.transfer_s.assign(timed.transfer_s.size(), 0);
    const StageGraph& graph = timed.graph;
    const std::vector<std::int64_t> k(graph.stages.size(), 1);
    const auto least = least_warm_ups(timed, k);
    const auto table = warm_ups_of(graph, k, table_in_flight(graph, k));
    for (std::size_t s = 0; s < k.size(); ++s) fewer += least[s] < table[s] ? 1 : 0;
    const OrderTiming timing = time_order(timed, k_f_k_b_order(graph, k, least), true);
    EXPECT_EQ(broken_rule(timed, timing), "");
    least_s += timing.time_s;
    table_s += time_with(timed, k, table);
  }
  EXPECT_GT(fewer, 20);
  EXPECT_LT(least_s, table_s);
}

/// By going through all k of all stages.
GroupSearchResult best_groups(const TimedGraph& timed) {
  const StageGraph& graph = timed.graph;
  std::vector<std::int64_t> k(graph.stages.size(), 1);
  using Key = std::tuple<double, double, double, std::vector<std::int64_t>>;
  std::optional<Key> best;
  GroupSearchResult result;
  for (;;) {
    const std::vector<std::int64_t> warm_ups = least_warm_ups(timed, k);
    const OrderTiming timing = time_order(timed, k_f_k_b_order(graph, k, warm_ups));
    double fullest = 0, all = 0;
    for (const DeviceTiming& device : timing.devices) {
      fullest = std::max(fullest, device.peak_bytes);
      all += device.peak_bytes;
    }
    const Key key{timing.time_s, fullest, all, k};
    if (!best || key < *best) {
      best = key;
      result.k = k;
      result.warm_ups = warm_ups;
      result.time_s = timing.time_s;
    }
    std::size_t s = 0;
    for (; s < k.size() && ++k[s] > graph.micro_batches(s); ++s) k[s] = 1;
    if (s == k.size()) return result;
  }
}

TEST(GroupSearch, EqualsGoingThroughAllOfEveryStage) {
  Random random(26);
  int tried = 0;
  for (int i = 0; i < 200; ++i) {
    const TimedGraph timed = random_costs(random, random_stage_graph(random, {3, 4, true}));
    if (timed.graph.batch > 8) continue;
    ++tried;
    const GroupSearchResult found = search_groups(timed);
    const GroupSearchResult best = best_groups(timed);
    ASSERT_TRUE(found.all);
    ASSERT_EQ(found.time_s, best.time_s) << i;
    ASSERT_EQ(found.k, best.k) << i;
    ASSERT_EQ(found.warm_ups, best.warm_ups) << i;
    // A descent from k alike finds nothing better.
    const GroupSearchResult some = search_groups(timed, {.most_choices = 0});
    ASSERT_EQ(some.all, false);
    ASSERT_GE(some.time_s, best.time_s);
  }
  EXPECT_GT(tried, 60);
}

/// The first stage has long forward passes, so that its gradients are wanted late; the second one's
/// backward passes are long.
TEST(GroupSearch, FindsTheKOfItsOwnThatOneStageGainsBy) {
  StageGraph graph{12, 1, {{0, 1}, {1, 1}}, {{0, 1}}};
  TimedGraph timed = timeless(graph);
  timed.costs[0].forward_s = 2.75;
  timed.costs[0].input_gradient_s = 2;
  timed.costs[0].reduce_gradients_s = 2;
  timed.costs[0].optimizer_s = 0.5;
  timed.costs[1].forward_s = 0.5;
  timed.costs[1].input_gradient_s = 3.375;
  timed.costs[1].reduce_gradients_s = 3.75;
  timed.costs[1].optimizer_s = 1.25;
  for (StageCost& cost : timed.costs) cost.stash_bytes = 1;
  const std::vector<std::int64_t> ones = {1, 1};
  const double one_s = time_with(timed, ones, least_warm_ups(timed, ones));
  for (const GroupSearch& limits : {GroupSearch{}, GroupSearch{.most_choices = 0}}) {
    const GroupSearchResult found = search_groups(timed, limits);
    EXPECT_EQ(found.k, (std::vector<std::int64_t>{2, 1}));
    EXPECT_EQ(found.warm_ups, (std::vector<std::int64_t>{4, 1}));
    EXPECT_EQ(found.time_s, 59.5);
    EXPECT_EQ(found.all, limits.most_choices > 0);
  }
  EXPECT_EQ(one_s, 59.875);
}

TEST(GroupSearch, KeepsToItsWork) {
  const TimedGraph timed = chain_of({1, 2, 1, 4}, 64, 1, 2);
  const GroupSearchResult one = search_groups(timed, {.most_work = 1});
  EXPECT_EQ(one.tried, 1);
  EXPECT_FALSE(one.all);
  EXPECT_EQ(one.k, (std::vector<std::int64_t>(4, 1)));
  const GroupSearchResult many = search_groups(timed);
  EXPECT_FALSE(many.all);
  EXPECT_GT(many.tried, 20);
  EXPECT_LE(many.time_s, one.time_s);
}

/// All orders of a stage's passes that keep its micro-batches in turn.
void all_orders(std::int32_t stage, std::int64_t m, std::int64_t forwards, std::int64_t backwards,
                std::vector<Work>& passes, std::vector<std::vector<Work>>& orders) {
  if (backwards == m) return orders.push_back(passes);
  if (forwards < m) {
    passes.push_back({WorkKind::forward, stage, forwards});
    all_orders(stage, m, forwards + 1, backwards, passes, orders);
    passes.pop_back();
  }
  if (backwards < forwards) {
    passes.push_back({WorkKind::backward, stage, backwards});
    all_orders(stage, m, forwards, backwards + 1, passes, orders);
    passes.pop_back();
  }
}

/// A random small graph behind one more stage, the last in number, that hands over to all of it.
std::optional<TimedGraph> behind_one_stage(Random& random) {
  StageGraph graph = random_stage_graph(random, {3, 1, true});
  for (std::size_t s = 0; s < graph.stages.size(); ++s) {
    graph.stages[s].device = static_cast<std::int32_t>(s) + 1;
  }
  const auto first = static_cast<std::int32_t>(graph.stages.size());
  for (std::int32_t s = 0; s < first; ++s) graph.edges.push_back({first, s});
  graph.stages.push_back({0, 1});
  check_stage_graph(graph);
  if (graph.batch > 5) return std::nullopt;  // Orders grow as Catalan's numbers.
  return random_costs(random, graph);
}

struct BestOrder {
  double end_s = std::numeric_limits<double>::infinity();
  std::int64_t in_flight = 0;
};

/// Of all orders of the passes of the last stage, on device 0, with at most so many in flight: the
/// earliest end, and the fewest in flight with that.
BestOrder best_of_all(const TimedGraph& timed, const WorkOrder& others, std::int64_t most) {
  const std::size_t last = timed.graph.stages.size() - 1;
  const auto stage = static_cast<std::int32_t>(last);
  std::vector<std::vector<Work>> orders;
  std::vector<Work> passes;
  all_orders(stage, timed.graph.micro_batches(last), 0, 0, passes, orders);
  BestOrder best;
  for (const std::vector<Work>& order : orders) {
    WorkOrder whole = others;
    whole.devices[0] = order;
    whole.devices[0].push_back({WorkKind::reduce_gradients, stage, 0});
    whole.devices[0].push_back({WorkKind::optimizer, stage, 0});
    try {
      const OrderTiming timing = time_order(timed, whole);
      const BestOrder one = {timing.devices[0].end_s, timing.peak_in_flight.back()};
      if (one.in_flight > most) continue;
      if (std::pair(one.end_s, one.in_flight) < std::pair(best.end_s, best.in_flight)) best = one;
    } catch (const Error&) {
      continue;
    }
  }
  return best;
}

TEST(GreedyOrder, FinishesFirstWithTheFewestInFlightOfAllOrdersOfTheFirstStage) {
  Random random(22);
  for (int i = 0; i < 400; ++i) {
    const std::optional<TimedGraph> timed = behind_one_stage(random);
    if (!timed) continue;
    const WorkOrder greedy = greedy_order(*timed);
    const OrderTiming found = time_order(*timed, greedy, true);
    ASSERT_EQ(broken_rule(*timed, found), "");
    const BestOrder best = best_of_all(*timed, greedy, timed->graph.batch);
    ASSERT_EQ(found.devices[0].end_s, best.end_s) << i;
    ASSERT_EQ(found.peak_in_flight.back(), best.in_flight) << i;
  }
}

/// Within a limit for each stage likewise; one that cannot be kept is refused with the stage named.
TEST(GreedyOrder, FinishesFirstOfAllOrdersWithinItsLimits) {
  Random random(23);
  int bound = 0, refused = 0;
  for (int i = 0; i < 400; ++i) {
    const std::optional<TimedGraph> timed = behind_one_stage(random);
    if (!timed) continue;
    std::vector<std::int64_t> most;
    for (std::size_t s = 0; s < timed->graph.stages.size(); ++s) most.push_back(pick(random, 1, 3));
    std::optional<WorkOrder> greedy;
    try {
      greedy = greedy_order(*timed, {most});
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).substr(0, 6), "stage ");
      ++refused;
      continue;
    }
    ASSERT_TRUE(greedy);
    const OrderTiming found = time_order(*timed, *greedy, true);
    ASSERT_EQ(broken_rule(*timed, found), "");
    for (std::size_t s = 0; s < most.size(); ++s) EXPECT_LE(found.peak_in_flight[s], most[s]);
    const BestOrder best = best_of_all(*timed, *greedy, most.back());
    ASSERT_EQ(found.devices[0].end_s, best.end_s) << i;
    ASSERT_EQ(found.peak_in_flight.back(), best.in_flight) << i;
    const BestOrder unbound = best_of_all(*timed, *greedy, timed->graph.batch);
    bound += unbound.end_s < best.end_s ? 1 : 0;
  }
  EXPECT_GT(bound, 5);
  EXPECT_GT(refused, 5);
}

/// Algorithm 4 as its listing has it: pass by pass.
std::vector<Work> listed_passes(std::int32_t stage, std::int64_t m, SubPipeline& after) {
  std::vector<Work> passes;
  std::int64_t forwards = 0, backwards = 0;
  const auto add = [&](std::vector<Work>& to, bool forward) {
    std::int64_t& next = forward ? forwards : backwards;
    to.push_back({forward ? WorkKind::forward : WorkKind::backward, stage, next++});
  };
  std::vector<Work> all_first;
  for (const bool forward : {true, false}) {
    for (std::int64_t k = 0; k < m; ++k) add(all_first, forward);
  }
  const double best_s = after.end_s(all_first);
  forwards = backwards = 0;
  while (backwards < m) {
    std::vector<Work> whole = passes;
    const auto before = std::pair(forwards, backwards);
    while (backwards < m && backwards < forwards) {
      add(whole, false);
      if (forwards < m) add(whole, true);
    }
    std::tie(forwards, backwards) = before;
    const bool backward = whole.size() == all_first.size() && after.end_s(whole) <= best_s;
    add(passes, !backward);
  }
  return passes;
}

TEST(GreedyOrder, IsTheListedAlgorithmPassByPass) {
  Random random(24);
  for (int i = 0; i < 150; ++i) {
    StageGraph graph = random_stage_graph(random, {5, 6, i % 2 == 0});
    for (std::size_t s = 0; s < graph.stages.size(); ++s) {
      graph.stages[s].device = static_cast<std::int32_t>(s);
    }
    const TimedGraph timed = random_costs(random, graph);
    const WorkOrder greedy = greedy_order(timed);
    std::vector<std::vector<Work>> chosen = greedy.devices;
    for (std::vector<Work>& passes : chosen) passes.resize(passes.size() - 2);  // The update.
    for (std::size_t s = 0; s < graph.stages.size(); ++s) {
      SubPipeline after(timed, s, chosen);
      EXPECT_EQ(chosen[s],
                listed_passes(static_cast<std::int32_t>(s), graph.micro_batches(s), after))
          << i << ' ' << s;
    }
  }
}

TEST(GreedyOrder, StopsWhenItsWorkIsDone) {
  const TimedGraph timed = chain_of({1, 1, 1}, 8, 1, 2);
  std::int64_t enough = 10'000;
  EXPECT_TRUE(greedy_order(timed, {{}, &enough}));
  EXPECT_GT(enough, 0);
  std::int64_t few = 100;
  EXPECT_FALSE(greedy_order(timed, {{}, &few}));
  EXPECT_LT(few, 0);
}

TEST(GreedyOrder, IsOneFOneBForEqualStages) {
  for (std::int64_t m = 1; m <= 9; ++m) {
    const TimedGraph timed = chain_of({1, 1, 1, 1}, m, 1, 2);
    EXPECT_EQ(greedy_order(timed), one_f_one_b_order(timed.graph)) << m;
  }
}

}  // namespace
}  // namespace braid
