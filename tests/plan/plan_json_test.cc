#include "braid/plan/plan_json.h"

#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/document.h"
#include "braid/base/error.h"

#include "base/error_text.h"
#include "plan/heterogeneous_plan.h"
#include "report/plan_maker.h"

namespace braid {
namespace {

using test::made_plan;
using ::testing::HasSubstr;
using ::testing::Not;

Plan piped_plan() {
  Parallelism p;
  p.pp = 2;
  p.dp = 3;
  p.vp = 2;
  p.num_micro_batches = 4;
  p.schedule = ScheduleKind::interleaved;
  Plan plan = made_plan(p, 6);
  plan.shape.emplace();
  plan.shape->first_block = 1;
  plan.shape->blocks = 6;
  plan.shape->dense_blocks = 2;
  plan.shape->experts = 8;
  plan.shape->activation = "geglu";
  plan.shape->latent_attention = true;
  return plan;
}

Plan read_back(const Plan& plan) {
  const Document document =
      Document::parse(to_text(to_json(plan)), Document::Syntax::json, "plan.json");
  return plan_from_json(document.root());
}

TEST(PlanJson, ReadsBackEqual) {
  Plan plan = piped_plan();
  EXPECT_EQ(read_back(plan), plan);
  plan.shape.reset();
  plan.claims = Claims{1.0 / 3, 1e9, 0.1, 0.2, 0.3};
  EXPECT_EQ(read_back(plan), plan);
  EXPECT_THAT(to_text(to_json(plan)), Not(HasSubstr("whole_experts")));
  plan.parallel.whole_experts = true;
  for (std::vector<Option>& kind : plan.profile.kinds) {
    for (Option& option : kind) option.how.whole_experts = true;
  }
  EXPECT_EQ(read_back(plan), plan);
}

/// A 1F1B plan whose second stage has four micro-batches.
Plan two_stages() {
  std::mt19937_64 random(5);
  Plan plan;
  do {
    plan = test::heterogeneous_plan(random, false, true);
  } while (plan.stages.size() != 2 || form_of(plan, 1).num_micro_batches != 4);
  plan.parallel.schedule = ScheduleKind::one_f_one_b;
  return plan;
}

TEST(PlanJson, FormatsOfSharedGradientsAreWrittenWhereTheyAreSet) {
  Plan plan = piped_plan();
  EXPECT_THAT(to_text(to_json(plan)), Not(HasSubstr("shared_gradient")));
  plan.precision.shared_gradient = Dtype::f16;
  EXPECT_EQ(read_back(plan), plan);
}

TEST(PlanJson, WarmUpsAreWrittenWhereTheyAreSet) {
  Plan plan = two_stages();
  EXPECT_THAT(to_text(to_json(plan)), Not(HasSubstr("warm_up")));
  plan.stages[1].own->warm_up = 4;
  EXPECT_THAT(to_text(to_json(plan)), HasSubstr("\"warm_up\": 4"));
  EXPECT_EQ(read_back(plan), plan);
}

TEST(PlanJson, RefusesWarmUpsThatAStageCannotHave) {
  Plan plan = two_stages();
  const auto fault = [&](std::int64_t warm_up) {
    plan.stages[1].own->warm_up = warm_up;
    return error_text([&] { read_back(plan); });
  };
  for (const std::int64_t warm_up : {-3, 0}) {
    EXPECT_THAT(fault(warm_up), HasSubstr("stages[1].own.warm_up")) << warm_up;
  }
  EXPECT_THAT(fault(5), HasSubstr("stages[1].own.warm_up: stage 2 has a warm-up of 5 forward "
                                  "passes, not of 1 to 4, its micro-batches"));
  plan.parallel.schedule = ScheduleKind::gpipe;
  EXPECT_THAT(fault(2), HasSubstr("stage 2 has a warm-up, which GPipe does not know"));
}

TEST(PlanJson, OrdersOfPassesAreWrittenWhereTheyAreSet) {
  Plan plan = two_stages();
  EXPECT_THAT(to_text(to_json(plan)), Not(HasSubstr("passes")));
  plan.stages[1].own->passes = {{2, 1, 1}, {1, 1, 1}, {1, 2, 1}};
  EXPECT_EQ(read_back(plan), plan);
  plan.stages[1].own->passes = {{1, 1, 4}};
  EXPECT_EQ(read_back(plan), plan);
}

TEST(PlanJson, RefusesOrdersOfPassesThatAStageCannotHave) {
  using Runs = std::vector<PassRun>;
  Plan plan = two_stages();
  const auto fault = [&](const Runs& passes) {
    plan.stages[1].own->passes = passes;
    return error_text([&] { read_back(plan); });
  };
  EXPECT_THAT(fault(Runs{{0, 1, 1}}), HasSubstr("stages[1].own.passes[0][0]"));
  EXPECT_THAT(fault(Runs{{1, 1, 1}, {1, -1, 1}}), HasSubstr("stages[1].own.passes[1][1]"));
  EXPECT_THAT(fault(Runs{{1, 1, std::int64_t{1} << 62}}), HasSubstr("passes[0][2]"));
  EXPECT_THAT(fault(Runs{{1, 1, 5}}),
              HasSubstr("stages[1].own.passes: stage 2 runs more than 4 forward passes"));
  EXPECT_THAT(fault(Runs{{1, 1, 3}}), HasSubstr("runs 3 forward and 3 backward passes, not 4"));
  EXPECT_THAT(fault(Runs{{1, 1, 1}, {1, 2, 1}, {2, 1, 1}}),
              HasSubstr("stage 2 runs the backward pass of micro-batch 2 before its forward"));
  plan.stages[1].own->warm_up = 1;
  EXPECT_THAT(fault(Runs{{1, 1, 4}}), HasSubstr("and so no warm-up"));
  plan.stages[1].own->warm_up.reset();
  plan.parallel.schedule = ScheduleKind::gpipe;
  EXPECT_THAT(fault(Runs{{1, 1, 4}}), HasSubstr("which GPipe does not know"));
}

TEST(PlanJson, RefusesRunsOfPassesThatAreNone) {
  const auto fault = [](const Json& passes) {
    Json json = to_json(two_stages());
    json["stages"][1]["own"]["passes"] = passes;
    return error_text([&] {
      plan_from_json(Document::parse(to_text(json), Document::Syntax::json, "plan.json").root());
    });
  };
  EXPECT_THAT(fault(Json::array()), HasSubstr("has at least one run"));
  EXPECT_THAT(fault(Json("4F 4B")), HasSubstr("stages[1].own.passes"));
  EXPECT_THAT(fault(Json::array({Json::array({4, 4})})), HasSubstr("a run has three numbers"));
  EXPECT_THAT(fault(Json::array({Json::array({4.5, 4, 1})})), HasSubstr("passes[0][0]"));
}

TEST(PlanJson, RefusesAShapeWithMoreBlocksThanLayers) {
  Plan plan = piped_plan();
  plan.shape->first_block = 3;
  EXPECT_THAT(error_text([&] { read_back(plan); }), HasSubstr("shape"));
  plan.shape->first_block = -1;
  EXPECT_THAT(error_text([&] { read_back(plan); }), HasSubstr("first_block"));
}

}  // namespace
}  // namespace braid
