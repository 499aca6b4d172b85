#include "braid/report/core_gantt.h"

#include <cstddef>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "braid/chip/cores/schedule_cores.h"
#include "braid/report/core_rows.h"

#include "report/chart_data.h"

namespace braid {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> row_names(const CoreRows& rows) {
  std::vector<std::string> names;
  for (const CoreRow& row : rows.rows) names.push_back(row.name);
  return names;
}

/// Two tensor operators side by side, then a vector operator on all of many cores.
struct Picture {
  CoreProblem problem{.operators = {{CoreKind::tensor, 2, 2},
                                    {CoreKind::tensor, 3, 3},
                                    {CoreKind::vector, 8, 1},
                                    {}},
                      .edges = {{0, 2}, {1, 2}, {2, 3}},
                      .cores = {4, 1024}};
  CoreOutcome outcome = schedule_cores(problem);
  std::vector<CoreName> names = {{"<query>", CorePart::forward},
                                 {"key", CorePart::weight_gradient},
                                 {"sum", CorePart::optimizer},
                                 {"identity", CorePart::forward}};
  CoreDrawing drawing() const { return {"A & B", problem, outcome, names}; }
};

TEST(CoreGantt, PutsCoresThatAreAlikeIntoOneRow) {
  const Picture picture;
  const CoreRows rows = core_rows(picture.problem, picture.outcome.schedule);
  EXPECT_THAT(row_names(rows),
              ::testing::ElementsAre("tensor 0", "tensor 1", "2 more", "1024 vector"));
  ASSERT_EQ(rows.boxes.size(), 3U);
  EXPECT_EQ(rows.boxes[2].op, 2U);
  EXPECT_EQ(rows.boxes[2].first_row, 3U);
  EXPECT_EQ(rows.boxes[2].last_row, 3U);
}

TEST(CoreGantt, CountsWhoIsBusyOfVeryManyCores) {
  CoreProblem problem;
  problem.cores = {50, 1};
  for (int i = 0; i < 30; ++i) {
    problem.operators.push_back({CoreKind::tensor, 1.0 + i % 2, 9});
  }
  const CoreOutcome outcome = schedule_cores(problem);
  const CoreRows rows = core_rows(problem, outcome.schedule);
  ASSERT_EQ(rows.rows.size(), 9U);
  EXPECT_EQ(rows.rows[7].name, "23 others");
  EXPECT_EQ(rows.rows[8].name, "20 more");
  ASSERT_FALSE(rows.rows[7].busy.empty());
  EXPECT_EQ(rows.rows[7].busy.front().second, 23);
  EXPECT_EQ(rows.rows[7].busy.back().second, 0);
}

TEST(CoreGantt, DrawsEveryOperatorOnceAndEscapesNames) {
  const Picture picture;
  const std::string svg = core_gantt_svg(picture.drawing());
  EXPECT_THAT(svg,
              HasSubstr("4 s on 4 tensor cores and 1024 vector cores, proven to be the least"));
  EXPECT_THAT(svg, HasSubstr("A &amp; B"));
  EXPECT_THAT(svg, HasSubstr("<title>&lt;query&gt;, forward: 2 s from 0 ns</title>"));
  EXPECT_THAT(svg, HasSubstr("<title>sum, optimizer, on all cores: 1 s from 3 s</title>"));
  EXPECT_THAT(svg, Not(HasSubstr("identity")));
}

TEST(CoreGantt, IsAChartOfAPage) {
  const Picture picture;
  const std::string page = core_page(picture.drawing());
  const nlohmann::json chart = test::charts_of(page, "cores").at(0);
  EXPECT_EQ(chart["end_s"], 4);
  EXPECT_EQ(chart["rows"].size(), 4U);
  EXPECT_EQ(chart["boxes"].at(2), nlohmann::json::parse(R"([3, 3, 3.0, 4.0, 3, "sum", true])"));
  CoreProblem nothing;
  const CoreOutcome none = schedule_cores(nothing);
  EXPECT_EQ(core_section({"nothing", nothing, none, {}}), "");
}

TEST(CoreGantt, NamesOperatorsByWhatTheyDo) {
  Operator op;
  op.name = "block1.up.weight_gradient";
  op.pass = Pass::weight_gradient;
  EXPECT_EQ(core_name(op, "block1").name, "up");
  EXPECT_EQ(core_name(op).name, "block1.up");
  EXPECT_EQ(core_name(op).part, CorePart::weight_gradient);
}

}  // namespace
}  // namespace braid
