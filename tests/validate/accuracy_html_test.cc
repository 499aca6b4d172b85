#include "braid/validate/accuracy_html.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/chart_data.h"

namespace braid {
namespace {

using test::charts_of;
using ::testing::HasSubstr;
using ::testing::Not;

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

struct PageCases {
  std::vector<MeasuredRun> runs;
  std::vector<Prediction> predictions;

  std::string page() const {
    return accuracy_page(runs, predictions, {"dataset"},
                         accuracy_by(runs, predictions, {"dataset"}));
  }
};

PageCases page_cases(int count) {
  PageCases cases;
  for (int i = 0; i < count; ++i) {
    MeasuredRun run;
    run.dataset = i % 2 == 0 ? "even" : "odd";
    run.model = "m<" + std::to_string(i) + ">";
    run.line = i + 2;
    run.devices = 8;
    run.seq_len = 1024 * (1 + i);
    cases.runs.push_back(run);
    Prediction prediction;
    prediction.measured_s = 1;
    prediction.bound_s = 0.5;
    prediction.chip = "h100-sxm";
    prediction.metrics.iteration_time_s = 1 + 0.01 * i;
    prediction.metrics.compute_s = prediction.metrics.iteration_time_s;
    cases.predictions.push_back(prediction);
  }
  return cases;
}

TEST(AccuracyPage, ShowsEveryRunTheWorstTenAndTheReasons) {
  PageCases cases = page_cases(20);
  cases.predictions[7].reason = "no \"reason\" <at> all";
  const std::string page = cases.page();
  EXPECT_EQ(charts_of(page, "scatter").at(0)["points"].size(), 19U);
  EXPECT_EQ(charts_of(page, "scatter").at(0)["groups"],
            nlohmann::json::parse(R"(["even", "odd"])"));
  EXPECT_EQ(charts_of(page, "strip").size(), 5U);
  EXPECT_THAT(page, HasSubstr("19 of 20"));
  // The ten that are furthest off are the last ten, each once with its time and with its memory.
  EXPECT_EQ(count(page, "<td>21</td>"), 2U);
  EXPECT_EQ(count(page, "<td>12</td>"), 2U);
  EXPECT_EQ(count(page, "<td>11</td>"), 0U);
  EXPECT_THAT(page, HasSubstr("no &quot;reason&quot; &lt;at&gt; all"));
  EXPECT_THAT(page, HasSubstr("m&lt;19&gt;"));
  EXPECT_THAT(page, HasSubstr("m\\u003c19>"));
  EXPECT_THAT(page, Not(HasSubstr("m<1")));
  // Twenty sequence lengths: too many for one axis.
  EXPECT_THAT(page, HasSubstr("runs with rarer values are not shown"));
}

TEST(AccuracyPage, StandsWithoutAPrediction) {
  PageCases cases = page_cases(2);
  for (Prediction& prediction : cases.predictions) prediction.reason = "unknown";
  const std::string page = cases.page();
  EXPECT_TRUE(charts_of(page, "scatter").empty() && charts_of(page, "strip").empty());
  EXPECT_THAT(page, HasSubstr("0 of 2"));
  EXPECT_THAT(page, HasSubstr("</html>"));
}

// Each run stands once in each plot, with its error, its group and what it is.
TEST(AccuracyPage, PlotsHaveEachRunWithItsGroup) {
  const PageCases cases = page_cases(6);
  const std::string page = cases.page();
  const nlohmann::json scatter = charts_of(page, "scatter").at(0);
  std::size_t odd = 0;
  for (const nlohmann::json& point : scatter["points"]) {
    EXPECT_EQ(point["x"][0], 1.0);
    odd += point["group"].get<std::size_t>();
  }
  EXPECT_EQ(odd, 3U);
  for (const char* axis : {"x", "y"}) {
    const nlohmann::json& named = axis[0] == 'x' ? scatter["x"][0] : scatter["y"];
    EXPECT_EQ(named["unit"], "s");
  }
  for (const nlohmann::json& strip : charts_of(page, "strip")) {
    std::vector<double> errors;
    for (const nlohmann::json& column : strip["columns"]) {
      for (const nlohmann::json& error : column["errors"]) errors.push_back(error[0]);
    }
    std::sort(errors.begin(), errors.end());
    ASSERT_EQ(errors.size(), 6U) << strip["title"];
    for (std::size_t i = 0; i < 6; ++i) {
      EXPECT_NEAR(errors[i], 0.01 * static_cast<double>(i), 1e-12);
    }
  }
}

TEST(Accuracy, OrdersByHowFarOff) {
  const PageCases cases = page_cases(5);
  EXPECT_EQ(furthest_off(cases.predictions, 2), (std::vector<std::size_t>{4, 3}));
  EXPECT_EQ(furthest_off(cases.predictions, 9).size(), 5U);
  EXPECT_EQ(line_ranges({2, 5, 6, 7, 9}), "2, 5-7, 9");
  EXPECT_EQ(line_ranges({}), "");
}

}  // namespace
}  // namespace braid
