#include "braid/explore/heat_map.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/explore/explore_page.h"

#include "explore/small_space.h"
#include "report/chart_data.h"

namespace braid {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

// Each point of one workload and way to divide has its value, and only these.
TEST(HeatMap, HasEachPointOnce) {
  const Space space = space_from(small_space_text());
  std::vector<PointResult> results(point_count(space));
  for (std::size_t number = 0; number < results.size(); ++number) {
    const SpacePoint point = point_of(space, number);
    results[number].status = Status::optimal;
    results[number].time_s = 1;
    results[number].parts_s = {1, 0, 0};
    results[number].utilisation = 0.1 + 0.01 * static_cast<double>(number);
    if (point[0] == 1 && point[1] == 0 && point[3] == 1) {
      results[number].status = Status::infeasible;
    }
  }
  const TitledMap map = heat_map(space, results, 1, 0, SpaceFigure::utilisation, TitleOfMap::drawn);
  const std::string& svg = map.svg;
  EXPECT_THAT(svg, HasSubstr(">" + map.title + "</text>"));
  const TitledMap untitled =
      heat_map(space, results, 1, 0, SpaceFigure::utilisation, TitleOfMap::on_page);
  EXPECT_EQ(untitled.title, map.title);
  EXPECT_THAT(untitled.svg, Not(HasSubstr(">" + map.title + "</text>")));
  for (std::size_t number = 0; number < results.size(); ++number) {
    const SpacePoint point = point_of(space, number);
    const std::string cell = fmt::format(">{:.1f} %<", 100 * results[number].utilisation);
    const bool shown = point[0] == 1 && point[1] == 0 && is_found(results[number]);
    EXPECT_EQ(count_of(svg, cell), shown ? 1U : 0U) << number;
  }
  // And one in the scale, which has five marks.
  EXPECT_EQ(count_of(svg, "class=\"none\""), 8U + 1U);
  EXPECT_THAT(svg, HasSubstr(">no plan<"));
  for (const char* mark : {">0<", ">25<", ">50<", ">75<", ">100<"}) {
    EXPECT_GE(count_of(svg, mark), 1U) << mark;
  }
  for (const char* name : {"flow slow", "plain fast", "torus", "mesh", "thin", "wide", "fold"}) {
    EXPECT_THAT(svg, HasSubstr(name));
  }
  // Colours, rows and columns say what they are of.
  EXPECT_THAT(svg, HasSubstr(">Utilisation, % of the peak</text>"));
  std::string rows;
  for (std::size_t axis = 2; axis < space.axes.size(); ++axis) {
    const SpaceAxis& of = space.axes[axis];
    if (of.values.size() == 1) continue;
    if (of.place == AxisPlace::row) rows += (rows.empty() ? "" : ", ") + of.name;
    if (of.place == AxisPlace::column) {
      EXPECT_THAT(svg, HasSubstr(">" + of.name + "</text>"));
    }
  }
  EXPECT_THAT(svg, HasSubstr(">" + rows + "</text>"));
}

// Of parts that follow each other the shares of their sum; of parts that overlap what each would
// take alone of the time that all take together.
TEST(BreakdownMap, HasABarForEachPartWherePartsOverlap) {
  const Space space = space_from(small_space_text());
  std::vector<PointResult> results(point_count(space));
  for (PointResult& result : results) {
    result.status = Status::optimal;
    result.figures = {10};  // Of a layer: its parts are of that.
    result.time_s = 40;
    result.parts_s = {6, 3, 1};
  }
  const TitledMap shares = breakdown_map(space, results, 0, 0, TitleOfMap::on_page);
  EXPECT_THAT(shares.title, HasSubstr("Where the time goes, shares of an iteration"));
  EXPECT_THAT(shares.svg, HasSubstr("<title>compute 60.0 %</title>"));
  EXPECT_THAT(shares.svg, Not(HasSubstr("class=\"track\"")));
  for (PointResult& result : results) result.parts_s = {10, 4, 1};
  const TitledMap alone = breakdown_map(space, results, 0, 0, TitleOfMap::on_page);
  EXPECT_THAT(alone.title, HasSubstr("would take alone"));
  EXPECT_THAT(alone.title, HasSubstr("overlapping"));
  for (const char* part : {"compute 100.0 %", "memory 40.0 %", "network 10.0 %"}) {
    EXPECT_EQ(count_of(alone.svg, "<title>" + std::string(part) + "</title>"), 16U) << part;
  }
}

TEST(HeatMap, SaysWhatItsFiguresArePer) {
  const Space space = space_from(small_space_text());
  std::vector<PointResult> results(point_count(space));
  for (PointResult& result : results) {
    result.status = Status::optimal;
    result.throughput = result.usd = result.watts = 2;
  }
  const auto title = [&](SpaceFigure figure) {
    return heat_map(space, results, 0, 0, figure, TitleOfMap::on_page).title;
  };
  EXPECT_THAT(title(SpaceFigure::per_usd), HasSubstr("Operations per second per USD"));
  EXPECT_THAT(title(SpaceFigure::per_w), HasSubstr("Operations per second per watt"));
}

TEST(HeatMap, PageNeedsNothingFromElsewhere) {
  const Space space = space_from(with("name: small", "name: 'a <b> & \"c\"'"));
  const std::vector<PointResult> results(point_count(space));
  const std::string page =
      explore_page(space, results, pareto_points(space, results), find_ratios(space, results));
  EXPECT_THAT(page, HasSubstr("a &lt;b&gt; &amp;"));
  EXPECT_THAT(page, Not(HasSubstr("<b>")));
  const std::string own = page.substr(0, page.find("<footer>"));
  EXPECT_EQ(count_of(own, "http"), count_of(own, "xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_EQ(count_of(own, "<svg"), 20U);
  EXPECT_EQ(count_of(own, "<svg"), count_of(own, "</svg>"));
  EXPECT_EQ(count_of(own, "<h3>"), count_of(own, "<svg"));
}

// Every point with a plan is in the plot of its workload, with its figures and whether it is
// optimal.
TEST(ParetoPlot, HasEveryPointWithAPlan) {
  const Space space = space_from(small_space_text());
  ASSERT_TRUE(space.has_prices && space.has_powers);
  std::vector<PointResult> results(point_count(space));
  for (std::size_t number = 0; number < results.size(); ++number) {
    if (number % 5 == 0) continue;
    PointResult& result = results[number];
    result.status = Status::optimal;
    result.time_s = 1;
    result.parts_s = {1, 0, 0};
    result.throughput = 1 + static_cast<double>(number * 7 % 11);
    result.usd = 10 + static_cast<double>(number * 5 % 13);
    result.watts = 20 + static_cast<double>(number * 3 % 17);
  }
  const std::vector<std::size_t> pareto = pareto_points(space, results);
  const std::string page = explore_page(space, results, pareto, find_ratios(space, results));
  const auto charts = test::charts_of(page, "scatter");
  ASSERT_EQ(charts.size(), space.units.size());
  std::size_t points = 0;
  std::size_t best = 0;
  for (const nlohmann::json& chart : charts) {
    EXPECT_EQ(chart["x"][0]["unit"], "USD");
    EXPECT_EQ(chart["x"][1]["unit"], "W");
    for (const nlohmann::json& point : chart["points"]) {
      ++points;
      best += point["best"].get<bool>() ? 1 : 0;
      EXPECT_GE(point["x"][0], 10);
      EXPECT_GE(point["x"][1], 20);
    }
  }
  EXPECT_EQ(points, results.size() - (results.size() + 4) / 5);
  EXPECT_EQ(best, pareto.size());
}

}  // namespace
}  // namespace braid
