#include "braid/explore/search_page.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "explore/small_space.h"
#include "report/chart_data.h"

namespace braid {
namespace {

using ::testing::HasSubstr;

/// Four accelerators, of which the first three are as fast as each other and ever dearer.
Space four_accelerators() {
  return space_from(R"(name: four
planner: phaze
search: {for: throughput, keep: 3}
degrees: {tp: 1, micro_batch: 4}
workloads: {gpt: {model: gpt3-125m, global_batch: 16, seq_len: 64}}
architectures: {area: 30 mm2, tensor_cores: [2, 4], vector_cores: [2, 4], width: [64, 64], depth: [64, 64], global_buffer: [4 MiB, 4 MiB], least_share: 0, least_share_of_single: 0}
networks: [phaze-tpuv4-1024]
devices: 4
)");
}

SystemSearchResult three_equal_of(const Space& space) {
  SystemSearchResult found;
  found.results.resize(point_count(space));
  PlannerSearch search;
  search.systems = search.planned = 4;
  for (std::size_t number = 0; number < 4; ++number) {
    PointResult& result = found.results[number];
    const double rank = static_cast<double>(number);
    result.status = Status::optimal;
    result.time_s = 1;
    result.throughput = number < 3 ? 100 : 50;
    result.usd = number < 3 ? 1000 + rank : 500;
    result.watts = number < 3 ? 2000 + rank : 600;
    result.figures.assign(4, 1);
    result.parts_s.assign(10, 0.1);
    result.words.assign(11, "1");
    found.planned.push_back(number);
    if (number < 3) {
      search.best.push_back({point_of(space, number), 100, result.usd, result.watts, {100}});
    }
  }
  search.at_most.assign(systems_of(space).architectures->all.size(), 100);
  search.is_exact.assign(search.at_most.size(), true);
  found.searches.push_back(search);
  return found;
}

// What is listed as best is not Pareto-optimal for that: a cheaper system may be as fast.
TEST(SearchPage, MarksTheFrontAndNumbersTheListed) {
  const Space space = four_accelerators();
  ASSERT_TRUE(space.has_prices && space.has_powers);
  ASSERT_GE(point_count(space), 4U);
  const std::string page = search_page(space, three_equal_of(space));
  const auto charts = test::charts_of(page, "scatter");
  ASSERT_EQ(charts.size(), 1U);
  EXPECT_EQ(charts[0]["front"]["best"],
            "Pareto-optimal in throughput, price and power, of what was planned");
  const nlohmann::json& points = charts[0]["points"];
  ASSERT_EQ(points.size(), 4U);
  for (std::size_t number = 0; number < 4; ++number) {
    EXPECT_EQ(points[number]["best"], number == 0 || number == 3) << number;
    EXPECT_EQ(points[number].value("number", 0U), number < 3 ? number + 1 : 0U);
    if (number < 3) {
      EXPECT_EQ(points[number]["name"], point_name(space, number, " "));
    }
  }
  EXPECT_THAT(page, HasSubstr("<tr><th>#</th><th>point</th>"));
  EXPECT_THAT(page, HasSubstr("<tr><td>3</td><td>" + point_name(space, 2, " ") + "</td>"));
}

}  // namespace
}  // namespace braid
