#include "braid/plan/plan_json.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/document.h"
#include "braid/base/error.h"

#include "base/error_text.h"
#include "report/plan_maker.h"

namespace braid {
namespace {

using ::testing::HasSubstr;
using testing::made_plan;

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
