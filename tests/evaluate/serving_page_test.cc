#include "braid/evaluate/serving_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/chart_data.h"
#include "serve/serving_fixture.h"

namespace braid {
namespace {

using nlohmann::json;
using test::ServingFixture;
using testing::HasSubstr;
using testing::Not;

TEST(ServingPage, MarksThePlanAmongAllWorkers) {
  for (const bool disaggregated : {false, true}) {
    const ServingFixture with("llama-3-8b", "dgx-h100:4", "vllm");
    ServingJob job = with.job(2048, 256);
    job.aggregated = !disaggregated;
    job.disaggregated = disaggregated;
    const ServingOutcome outcome = plan_serving(job);
    ASSERT_TRUE(outcome.plan);
    const std::string page = serving_page(outcome, job, "dgx-h100:4", {"<note>"});
    const json data = test::charts_of(page, "scatter").front();
    ASSERT_EQ(data["points"].size(), outcome.points.size() + 1);
    const json& planned = data["points"].back();
    EXPECT_EQ(planned["group"], 1);
    EXPECT_TRUE(planned["best"]);
    EXPECT_NEAR(planned["x"][0].get<double>(), 1e3 * outcome.plan->tpot_s, 1e-9);
    EXPECT_NEAR(planned["y"].get<double>(), outcome.plan->requests_per_s_per_device() * 256, 1e-9);
    EXPECT_EQ(data["limit"]["x"], 50);
    // Those that no other beats are marked, and are as many as the table has.
    std::size_t marked = 0;
    for (std::size_t i = 0; i + 1 < data["points"].size(); ++i) {
      const json& point = data["points"][i];
      if (!point["best"]) continue;
      ++marked;
      for (std::size_t j = 0; j + 1 < data["points"].size(); ++j) {
        const json& other = data["points"][j];
        EXPECT_FALSE(other["x"][0] < point["x"][0] && other["y"] > point["y"]);
      }
    }
    EXPECT_EQ(marked, outcome.front.size());
    EXPECT_THAT(page, HasSubstr(disaggregated ? "Prefill workers" : ">Workers</h3>"));
    EXPECT_THAT(page, HasSubstr("caches of its sequences"));
    EXPECT_THAT(page, HasSubstr("<p class=\"warning\">&lt;note&gt;</p>"));
  }
}

TEST(ServingPage, EscapesNames) {
  ServingFixture with("llama-3-8b", "dgx-h100:1", "sglang");
  with.model.name = "</script><b>&";
  const ServingJob job = with.job(512, 64);
  const ServingOutcome outcome = plan_serving(job);
  ASSERT_TRUE(outcome.plan);
  EXPECT_THAT(serving_page(outcome, job, "<i>", {}), Not(HasSubstr("<b>&")));
  EXPECT_THAT(serving_page(outcome, job, "<i>x", {}), Not(HasSubstr("<i>x")));
}

}  // namespace
}  // namespace braid
