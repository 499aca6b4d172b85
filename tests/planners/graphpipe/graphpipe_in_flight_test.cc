#include <algorithm>
#include <cstddef>
#include <limits>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/planners/graphpipe/in_flight.h"

#include "base/pick.h"

namespace braid {
namespace {

using ::testing::ElementsAre;
using Counts = std::vector<std::int64_t>;

struct Trips {
  std::vector<RoundTripStage> stages;
  std::vector<RoundTripEdge> edges;
  double period_s = 0;
  std::int64_t most = 1;
};

LeastInFlight least_of(const Trips& trips) {
  return least_in_flight(trips.stages, trips.edges, trips.period_s, trips.most);
}

/// Any graph; times are quarters, so that sums are exact.
Trips random_trips(std::mt19937_64& random) {
  Trips trips;
  const int count = test::pick(random, 1, 6);
  for (int s = 0; s < count; ++s) {
    trips.stages.push_back({test::pick(random, 0, 12) / 4.0, test::pick(random, 0, 16) / 4.0});
    trips.period_s =
        std::max(trips.period_s, trips.stages.back().forward_s + trips.stages.back().backward_s);
  }
  trips.period_s += test::pick(random, 0, 1) * test::pick(random, 0, 20) / 8.0 + 1.0 / 64;
  for (std::int32_t from = 0; from < count; ++from) {
    for (std::int32_t to = from + 1; to < count; ++to) {
      if (test::pick(random, 0, 2) == 0) continue;
      trips.edges.push_back(
          {from, to, test::pick(random, 0, 6) / 4.0, test::pick(random, 0, 6) / 4.0});
    }
  }
  trips.most = test::pick(random, 1, 12);
  return trips;
}

/// Whether stages from `first` on can repeat their passes with so many in flight: longest paths
/// between starts of forward and ends of backward passes, each stage's two, have no cycle.
bool repeats(const Trips& trips, std::size_t first, const Counts& counts) {
  const std::size_t n = trips.stages.size();
  std::vector<std::vector<double>> far(2 * n, std::vector<double>(2 * n, -1e300));
  const auto put = [&](std::size_t from, std::size_t to, double time_s) {
    far[from][to] = std::max(far[from][to], time_s);
  };
  for (std::size_t s = first; s < n; ++s) {
    const auto l = static_cast<double>(counts[s]);
    put(2 * s, 2 * s + 1,
        (l - 1) * trips.period_s + trips.stages[s].forward_s + trips.stages[s].backward_s);
    if (counts[s] < trips.most) put(2 * s + 1, 2 * s, -l * trips.period_s);
  }
  for (const RoundTripEdge& edge : trips.edges) {
    const auto s = static_cast<std::size_t>(edge.source);
    const auto t = static_cast<std::size_t>(edge.target);
    if (s < first) continue;
    put(2 * s, 2 * t, trips.stages[s].forward_s + edge.out_s);
    put(2 * t + 1, 2 * s + 1, edge.back_s + trips.stages[s].backward_s);
  }
  for (std::size_t k = 0; k < 2 * n; ++k) {
    for (std::size_t i = 0; i < 2 * n; ++i) {
      for (std::size_t j = 0; j < 2 * n; ++j) put(i, j, far[i][k] + far[k][j]);
    }
  }
  for (std::size_t i = 0; i < 2 * n; ++i) {
    if (far[i][i] > 1e-9) return false;
  }
  return true;
}

TEST(GraphPipeInFlight, IsTheFewestThatRepeatStageByStage) {
  std::mt19937_64 random(61);
  int several = 0, all = 0;
  for (int i = 0; i < 400; ++i) {
    const Trips trips = random_trips(random);
    Counts counts(trips.stages.size(), 1);
    for (std::size_t s = trips.stages.size(); s-- > 0;) {
      while (!repeats(trips, s, counts)) {
        ASSERT_LT(counts[s], trips.most) << i;
        ++counts[s];
      }
    }
    ASSERT_EQ(least_of(trips).micro_batches, counts) << i;
    const std::int64_t most = *std::max_element(counts.begin(), counts.end());
    several += most > 2 ? 1 : 0;
    all += trips.most > 1 && most == trips.most ? 1 : 0;
  }
  EXPECT_GT(several, 100);
  EXPECT_GT(all, 20);
}

TEST(GraphPipeInFlight, SlowerRatesNeverAskForMore) {
  std::mt19937_64 random(62);
  for (int i = 0; i < 400; ++i) {
    Trips trips = random_trips(random);
    const Counts before = least_of(trips).micro_batches;
    trips.period_s *= 1 + test::pick(random, 1, 20) / 16.0;
    const Counts after = least_of(trips).micro_batches;
    for (std::size_t s = 0; s < before.size(); ++s) EXPECT_LE(after[s], before[s]) << i;
  }
}

TEST(GraphPipeInFlight, OfALineIsItsWayInPeriods) {
  Trips line;
  line.stages = {{1, 2}, {1, 2}, {1, 2}};
  line.edges = {{0, 1, 0.5, 0.5}, {1, 2, 0.5, 0.5}};
  line.period_s = 3;
  line.most = 8;
  EXPECT_THAT(least_of(line).micro_batches, ElementsAre(5, 3, 1));
  line.period_s = 12;
  EXPECT_THAT(least_of(line).micro_batches, ElementsAre(1, 1, 1));
  EXPECT_EQ(least_of(line).fill_s, 11);
  line.period_s = 3;
  line.most = 2;
  EXPECT_THAT(least_of(line).micro_batches, ElementsAre(2, 2, 1));
}

/// Ways out through one branch come back through the other only where both meet again.
TEST(GraphPipeInFlight, WaysThroughOtherBranchesCountWhereTheyMeet) {
  Trips trips;
  trips.stages = {{0, 0}, {9, 1}, {1, 9}, {0, 0}};
  trips.edges = {{0, 1, 0, 0}, {0, 2, 0, 0}};
  trips.period_s = 10;
  trips.most = 8;
  EXPECT_THAT(least_of(trips).micro_batches, ElementsAre(1, 1, 1, 1));
  EXPECT_EQ(least_of(trips).fill_s, 10);
  trips.edges = {{0, 1, 0, 0}, {0, 2, 0, 0}, {1, 3, 0, 0}, {2, 3, 0, 0}};
  EXPECT_THAT(least_of(trips).micro_batches, ElementsAre(2, 1, 1, 1));
  EXPECT_EQ(least_of(trips).fill_s, 18);
}

}  // namespace
}  // namespace braid
