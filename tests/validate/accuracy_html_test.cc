#include "braid/validate/accuracy_html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/validate/accuracy_plots.h"

namespace braid {
namespace {

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
  EXPECT_EQ(count(page, "<circle"), 19U);
  EXPECT_EQ(count(page, "</svg>"), 6U);
  EXPECT_THAT(page, HasSubstr("19 of 20"));
  // The ten that are furthest off are the last ten, each once with its time and with its memory.
  EXPECT_EQ(count(page, "<td>21</td>"), 2U);
  EXPECT_EQ(count(page, "<td>12</td>"), 2U);
  EXPECT_EQ(count(page, "<td>11</td>"), 0U);
  EXPECT_THAT(page, HasSubstr("no &quot;reason&quot; &lt;at&gt; all"));
  EXPECT_THAT(page, HasSubstr("m&lt;19&gt;"));
  EXPECT_THAT(page, Not(HasSubstr("m<1")));
  // Twenty sequence lengths: too many for one axis.
  EXPECT_THAT(page, HasSubstr("runs with rarer values are not shown"));
}

TEST(AccuracyPage, StandsWithoutAPrediction) {
  PageCases cases = page_cases(2);
  for (Prediction& prediction : cases.predictions) prediction.reason = "unknown";
  const std::string page = cases.page();
  EXPECT_EQ(count(page, "<svg"), 0U);
  EXPECT_THAT(page, HasSubstr("0 of 2"));
  EXPECT_THAT(page, HasSubstr("</html>"));
}

TEST(AccuracyPlots, DotsLieOnTheDiagonalWhenPredictionsAreRight) {
  const std::string plot = scatter_plot({{1, 1, 0, "a"}, {10, 10, 1, "b"}, {100, 10, 1, "c"}});
  // A square plot would put x and y alike; here both grow by the same share of their axes.
  EXPECT_EQ(count(plot, "<circle"), 3U);
  EXPECT_EQ(count(plot, group_colour(1)), 2U);
  EXPECT_EQ(scatter_plot({}), "");
}

TEST(AccuracyPlots, ErrorsBeyondTheAxisStayInside) {
  const std::string plot = error_plot({{"1", {0, 5, -0.9}}, {"2 & 3", {0.1}}});
  EXPECT_THAT(plot, HasSubstr("+100 %"));
  EXPECT_THAT(plot, HasSubstr("2 &amp; 3"));
  EXPECT_THAT(plot, HasSubstr("n = 3"));
  EXPECT_EQ(count(plot, "h0"), 4U);
  EXPECT_THAT(plot, Not(HasSubstr("nan")));
  EXPECT_EQ(error_plot({}), "");
  // Long names side by side stand in two rows, short ones in one.
  std::vector<ErrorColumn> chips(11, {"a100-sxm-40gb", {0.1}});
  EXPECT_THAT(error_plot(chips),
              ::testing::AllOf(HasSubstr("y=\"228.0\""), HasSubstr("y=\"262.0\"")));
  for (ErrorColumn& chip : chips) chip.name = "t4";
  EXPECT_THAT(error_plot(chips),
              ::testing::AllOf(HasSubstr("y=\"228.0\""), Not(HasSubstr("y=\"262.0\""))));
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
