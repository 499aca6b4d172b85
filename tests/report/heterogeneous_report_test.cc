#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/report/form_text.h"
#include "braid/report/html.h"
#include "braid/report/plan_text.h"
#include "braid/schedule/timeline.h"
#include "braid/trainers/registry.h"

#include "plan/heterogeneous_plan.h"

namespace braid {
namespace {

using ::testing::HasSubstr;

/// Two stages: 2 x 1 and 1 x 4 devices, micro-batches of 3 and 6 samples.
Plan two_stages() {
  std::mt19937_64 random(1);
  Plan plan;
  do {
    plan = test::heterogeneous_plan(random);
  } while (plan.stages.size() != 2);
  const auto set = [](Stage& stage, int dp, int tp, int micro_batch, std::int64_t first) {
    stage.dp = dp;
    stage.tp = tp;
    stage.cp = 1;
    stage.own = StageConfig{micro_batch, 1, tp > 1, Zero::none, false, false, {}};
    stage.devices.clear();
    for (int i = 0; i < dp * tp; ++i) stage.devices.push_back(first + i);
  };
  set(plan.stages[0], 2, 1, 3, 0);
  set(plan.stages[1], 1, 4, 6, 2);
  plan.system = test::heterogeneous_system(random, 2, false);
  return plan;
}

TEST(HeterogeneousReport, TablesSayFromWhereToWhere) {
  const FormText form = form_text(two_stages());
  EXPECT_EQ(form.tp, "1-4sp");
  EXPECT_EQ(form.dp, "1-2");
  EXPECT_EQ(form.cp, "1");
  EXPECT_EQ(form.micro_batch, "3-6");
  EXPECT_EQ(form.num_micro_batches, "4");
  EXPECT_EQ(form.zero, "0");
  EXPECT_EQ(form.offload, "");
}

TEST(HeterogeneousReport, TextAndPageNameEachStagesForm) {
  Outcome outcome;
  Candidate candidate;
  candidate.plan = two_stages();
  candidate.metrics = measure(candidate.plan);
  outcome.candidates = {candidate};
  const std::string text = plan_text(outcome);
  EXPECT_THAT(text, HasSubstr("1-4sp"));
  EXPECT_THAT(text, HasSubstr("MBS"));
  EXPECT_THAT(text, HasSubstr("x one"));
  const std::string page = html_report(candidate.plan);
  EXPECT_THAT(page, HasSubstr("TP 1-4sp, PP 2"));
  EXPECT_THAT(page, HasSubstr("DP 1, TP 4sp, CP 1, micro-batches of 6"));
}

TEST(HeterogeneousReport, ExportersRefuse) {
  for (const std::string& target : export_targets()) {
    EXPECT_THROW(export_plan(two_stages(), target), Error) << target;
  }
}

}  // namespace
}  // namespace braid
