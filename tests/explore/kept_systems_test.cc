#include "braid/explore/kept_systems.h"

#include <random>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "braid/explore/pareto.h"

#include "base/pick.h"

namespace braid {
namespace {

using test::pick;

TEST(KeptSystems, OfAFrontAreTheParetoSetByFallingThroughput) {
  std::mt19937_64 random(71);
  std::size_t kept = 0;
  for (int trial = 0; trial < 300; ++trial) {
    Space space;
    SystemSpace systems;
    systems.search.emplace();
    systems.search->what = SearchFor::front;
    systems.has_prices = pick(random, 0, 2) > 0;
    systems.has_powers = pick(random, 0, 2) > 0;
    const auto figure_where = [&](bool has) {
      return has ? static_cast<double>(pick(random, 1, 8)) : 0.0;
    };
    std::vector<ParetoPoint> points;
    for (int system = pick(random, 1, 40); system > 0; --system) {
      points.push_back(
          {figure_where(true), figure_where(systems.has_prices), figure_where(systems.has_powers)});
    }
    space.points = std::move(systems);
    KeptSystems systems_kept(space);
    for (const ParetoPoint& point : points) {
      FoundSystem found;
      found.value = point.throughput;
      found.usd = point.usd;
      found.watts = point.watts;
      systems_kept.add(std::move(found));
    }
    // Equal ones once.
    using Figures = std::tuple<double, double, double>;
    std::set<Figures> expected;
    for (const std::size_t i : pareto_set(points)) {
      expected.emplace(points[i].throughput, points[i].usd, points[i].watts);
    }
    for (const Figures& figures : expected) {
      const auto& [value, usd, watts] = figures;
      EXPECT_TRUE(systems_kept.settles({value, usd, watts}));
      EXPECT_FALSE(systems_kept.settles({value + 9, usd, watts}));
    }
    std::set<Figures> front;
    double before = 9;
    for (const FoundSystem& found : systems_kept.take()) {
      EXPECT_LE(found.value, before);
      before = found.value;
      EXPECT_TRUE(front.emplace(found.value, found.usd, found.watts).second);
    }
    EXPECT_EQ(front, expected) << trial;
    kept += front.size();
  }
  EXPECT_GT(kept, 600U);
}

}  // namespace
}  // namespace braid
