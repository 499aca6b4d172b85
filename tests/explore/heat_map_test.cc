#include "braid/explore/heat_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/explore/explore_page.h"

#include "explore/small_space.h"

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
  const std::string svg = heat_map_svg(space, results, 1, 0, SpaceFigure::utilisation);
  for (std::size_t number = 0; number < results.size(); ++number) {
    const SpacePoint point = point_of(space, number);
    const std::string cell = ">" + std::to_string(results[number].utilisation).substr(0, 4) + "<";
    const bool shown = point[0] == 1 && point[1] == 0 && is_found(results[number]);
    EXPECT_EQ(count_of(svg, cell), shown ? 1U : 0U) << number;
  }
  EXPECT_EQ(count_of(svg, "class=\"none\""), 8U);
  for (const char* name : {"flow slow", "plain fast", "torus", "mesh", "thin", "wide", "fold"}) {
    EXPECT_THAT(svg, HasSubstr(name));
  }
}

TEST(HeatMap, PageNeedsNothingFromElsewhere) {
  const Space space = space_from(with("name: small", "name: 'a <b> & \"c\"'"));
  const std::vector<PointResult> results(point_count(space));
  const std::string page =
      explore_page(space, results, pareto_points(space, results), find_ratios(space, results));
  EXPECT_THAT(page, HasSubstr("a &lt;b&gt; &amp;"));
  EXPECT_THAT(page, Not(HasSubstr("<b>")));
  EXPECT_EQ(count_of(page, "http"), count_of(page, "xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_EQ(count_of(page, "<svg"), 20U);
  EXPECT_EQ(count_of(page, "<svg"), count_of(page, "</svg>"));
}

}  // namespace
}  // namespace braid
