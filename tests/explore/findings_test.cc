#include "braid/explore/findings.h"

#include <algorithm>
#include <cmath>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/explore/findings_csv.h"
#include "braid/explore/findings_table.h"
#include "braid/explore/pareto.h"
#include "braid/explore/sweep.h"

#include "explore/small_space.h"

namespace braid {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// By definition: all pairs. Few values, so that there are ties.
TEST(Pareto, AgreesWithAllPairs) {
  std::mt19937_64 random(17);
  for (int round = 0; round < 400; ++round) {
    const std::uint64_t values = 1 + random() % 8;
    std::vector<ParetoPoint> points(random() % 40);
    for (ParetoPoint& point : points) {
      point = {static_cast<double>(random() % values), static_cast<double>(random() % values),
               static_cast<double>(random() % values)};
    }
    std::vector<std::size_t> expected;
    for (std::size_t i = 0; i < points.size(); ++i) {
      bool beaten = false;
      for (const ParetoPoint& other : points) {
        const ParetoPoint& mine = points[i];
        const bool no_worse = other.throughput >= mine.throughput && other.usd <= mine.usd &&
                              other.watts <= mine.watts;
        const bool same = other.throughput == mine.throughput && other.usd == mine.usd &&
                          other.watts == mine.watts;
        beaten = beaten || (no_worse && !same);
      }
      if (!beaten) expected.push_back(i);
    }
    EXPECT_EQ(pareto_set(points), expected);
  }
}

TEST(Findings, ParetoIsPerWorkload) {
  const Space space = space_from(small_space_text());
  const Sweep sweep = sweep_space(space, nullptr);
  const std::vector<std::size_t> set = pareto_points(space, sweep.results);
  for (std::size_t number = 0; number < sweep.results.size(); ++number) {
    const PointResult& mine = sweep.results[number];
    bool beaten = !is_found(mine);
    for (std::size_t other = 0; other < sweep.results.size(); ++other) {
      const PointResult& theirs = sweep.results[other];
      if (point_of(space, other)[0] != point_of(space, number)[0] || !is_found(theirs)) continue;
      // The same operations: throughput is the other way round than time.
      const bool no_worse =
          theirs.time_s <= mine.time_s && theirs.usd <= mine.usd && theirs.watts <= mine.watts;
      const bool better =
          theirs.time_s < mine.time_s || theirs.usd < mine.usd || theirs.watts < mine.watts;
      beaten = beaten || (no_worse && better);
    }
    EXPECT_EQ(std::binary_search(set.begin(), set.end(), number), !beaten) << number;
  }
}

TEST(FindingsTable, SaysDegreesWhereAnyPointHasThem) {
  const Space space = space_from(small_space_text());
  std::vector<PointResult> results(point_count(space));
  for (PointResult& result : results) result.status = Status::optimal;
  const std::vector<std::size_t> numbers{0, 1};
  EXPECT_EQ(points_table(space, results, numbers)[0].back(), "status");
  EXPECT_EQ(points_table(space, results, numbers)[1].back(), "optimal");
  results[1].form = "2 x 1 x 1";
  EXPECT_EQ(points_table(space, results, numbers)[0].back(), "tp x pp x dp");
  EXPECT_EQ(points_table(space, results, numbers)[1].back(), "-");
  EXPECT_EQ(points_table(space, results, numbers)[2].back(), "2 x 1 x 1");
}

// Only of these points, and in the words of the table of plans.
TEST(FindingsTable, LegendExplainsTheMarksOfItsPlans) {
  const Space space = space_from(small_systems_text());
  std::vector<PointResult> results(point_count(space));
  for (PointResult& result : results) {
    result.status = Status::optimal;
    result.words.assign(columns_of(space).words.size(), "1");
    result.words.back() = "";
  }
  results[1].words.front() = "2sp";
  results[1].words.back() = "+opt";
  const std::vector<std::size_t> plain{0, 2}, marked{0, 1};
  EXPECT_THAT(points_legend(space, results, plain), Not(HasSubstr("in host memory")));
  EXPECT_THAT(
      points_legend(space, results, marked),
      HasSubstr("\nsp: with sequence parallelism; off+opt: optimizer state in host memory\n"));
}

TEST(Findings, RatiosAreOfGeometricMeans) {
  const Space space = space_from(small_space_text());
  std::vector<PointResult> results(point_count(space));
  double product[2][2] = {{1, 1}, {1, 1}};
  for (std::size_t number = 0; number < results.size(); ++number) {
    const SpacePoint point = point_of(space, number);
    PointResult& result = results[number];
    result.status = number == 5 ? Status::infeasible : Status::optimal;
    result.utilisation = 0.01 * static_cast<double>(1 + number * 7 % 31);
    result.time_s = 1;
    if (is_found(result)) product[point[1]][point[5]] *= result.utilisation;
  }
  const std::vector<RatioFinding> findings = find_ratios(space, results);
  ASSERT_EQ(findings.size(), 3U);  // The second compares the ways to divide.
  EXPECT_EQ(findings[0].below, 16U);
  EXPECT_EQ(findings[0].below + findings[0].above, 31U);  // One point has no plan.
  EXPECT_NEAR(*findings[0].value,
              std::pow(product[0][1], 1.0 / static_cast<double>(findings[0].above)) /
                  std::pow(product[0][0], 1.0 / static_cast<double>(findings[0].below)),
              1e-9);
  EXPECT_NEAR(*findings[1].value, std::pow(product[1][1] / product[1][0], 1.0 / 16), 1e-9);
  EXPECT_FALSE(findings[2].method.has_value());
  EXPECT_FALSE(findings[2].value.has_value());  // Without operations no throughput.
}

TEST(Findings, SearchedIsNeverSlowerThanGiven) {
  const Space space = space_from(small_space_text());
  const Sweep sweep = sweep_space(space, nullptr);
  for (std::size_t number = 0; number < sweep.results.size(); ++number) {
    SpacePoint point = point_of(space, number);
    if (point[1] != 0) continue;
    const std::size_t searched = number + 16;  // The ways to divide are the second axis.
    ASSERT_EQ(point_of(space, searched)[1], 1U);
    ASSERT_TRUE(is_found(sweep.results[searched]));
    if (!is_found(sweep.results[number])) continue;
    EXPECT_LE(sweep.results[searched].time_s, sweep.results[number].time_s * (1 + 1e-9)) << number;
    EXPECT_LE(sweep.results[searched].lower_bound_s, sweep.results[searched].time_s);
  }
}

TEST(Findings, CsvHasARowForEachPoint) {
  const Space space = space_from(small_space_text());
  const Sweep sweep = sweep_space(space, nullptr);
  std::vector<std::size_t> all(sweep.results.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  const std::string csv = points_csv(space, sweep.results, all);
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 65);
  const auto columns =
      std::count(csv.begin(), csv.begin() + static_cast<std::ptrdiff_t>(csv.find('\n')), ',');
  std::size_t at = 0;
  while (at < csv.size()) {
    const std::size_t end = csv.find('\n', at);
    EXPECT_EQ(std::count(csv.begin() + static_cast<std::ptrdiff_t>(at),
                         csv.begin() + static_cast<std::ptrdiff_t>(end), ','),
              columns);
    at = end + 1;
  }
}

}  // namespace
}  // namespace braid
