#include "braid/trainers/exchange/one_form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/error.h"

#include "report/plan_maker.h"

namespace braid {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Parallelism form_of_stages(int pp, int micro_batches) {
  Parallelism parallel;
  parallel.tp = 2;
  parallel.dp = 2;
  parallel.pp = pp;
  parallel.micro_batch = 3;
  parallel.num_micro_batches = micro_batches;
  parallel.zero = Zero::optimizer;
  parallel.recompute = Recompute::full;
  return parallel;
}

/// The same plan, every stage with a form of its own that says what the plan said.
Plan with_own_forms(Plan plan) {
  for (Stage& stage : plan.stages) {
    stage.own.emplace();
    stage.own->micro_batch = plan.parallel.micro_batch;
    stage.own->ep = plan.parallel.ep;
    stage.own->sequence_parallel = plan.parallel.sequence_parallel;
    stage.own->zero = plan.parallel.zero;
  }
  Parallelism kept;
  kept.pp = plan.parallel.pp;
  plan.parallel = kept;
  return plan;
}

std::string refusal_of(const Plan& plan) {
  try {
    in_one_form(plan, "megatron");
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(SharedConfig, OfStagesThatSayThePlansFormIsTheUniformPlan) {
  for (const int pp : {1, 2, 4}) {
    const Plan plan = test::made_plan(form_of_stages(pp, 8), 7);
    const SharedConfig one = in_one_form(with_own_forms(plan), "megatron");
    EXPECT_EQ(one.plan, plan);
    EXPECT_THAT(one.notes, IsEmpty());
    EXPECT_EQ(in_one_form(plan, "megatron").plan, plan);
  }
}

TEST(SharedConfig, RefusesStagesThatDiffer) {
  const Plan plan = with_own_forms(test::made_plan(form_of_stages(2, 8), 4));
  Plan other = plan;
  other.stages[1].own->zero = Zero::none;
  EXPECT_THAT(refusal_of(other), HasSubstr("stages 1 and 2 differ in"));
  other = plan;
  other.stages[1].dp = 4;
  other.stages[1].tp = 1;
  EXPECT_THAT(refusal_of(other), HasSubstr("stages 1 and 2 differ in"));
  other = plan;
  std::swap(other.stages[0].chunks, other.stages[1].chunks);
  EXPECT_THAT(refusal_of(other), HasSubstr("stage 1 does not hold consecutive layers"));
  other = plan;
  other.profile.kinds[1].push_back(other.profile.kinds[1].front());
  other.profile.kinds[1].back().how.recompute = Recompute::none;
  other.stages[0].chunks[0].options[1] = 1;
  EXPECT_THAT(refusal_of(other), HasSubstr("the layers of stage 1 differ in recomputation"));
}

TEST(SharedConfig, TakesTheWarmUpsOf1F1BWhereTheyFit) {
  Plan plan = with_own_forms(test::made_plan(form_of_stages(2, 8), 4));
  plan.stages[0].own->warm_up = 3;
  const SharedConfig one = in_one_form(plan, "megatron");
  ASSERT_EQ(one.notes.size(), 1U);
  EXPECT_THAT(one.notes.front(), HasSubstr("stage 1 begins with 2 forward passes"));
  plan.stages[0].own->warm_up = 1;
  EXPECT_EQ(in_one_form(plan, "megatron").notes.size(), 1U);
  plan.system.groups.front().chip.memory.bytes = 4.5e5;  // One micro-batch of four layers fits.
  EXPECT_THAT(refusal_of(plan), HasSubstr("stage 1 holds 1 micro-batches at most, fewer than"));
}

/// Two nodes of different chips, the first stage on the second.
Plan on_swapped_nodes() {
  Plan plan = with_own_forms(test::made_plan(form_of_stages(2, 8), 4));
  plan.system.groups.front().nodes = 1;
  plan.system.groups.push_back(plan.system.groups.front());
  plan.system.groups.back().chip.name = "other-chip";
  for (std::vector<Option>& options : plan.profile.kinds) options.front().device_group = 1;
  std::swap(plan.stages[0].devices, plan.stages[1].devices);
  return plan;
}

TEST(SharedConfig, NumbersDevicesByRank) {
  const SharedConfig one = in_one_form(on_swapped_nodes(), "megatron");
  EXPECT_THAT(one.plan.stages[0].devices, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(one.plan.stages[1].devices, ElementsAre(4, 5, 6, 7));
  ASSERT_EQ(one.plan.system.groups.size(), 2U);
  EXPECT_EQ(one.plan.system.groups[0].chip.name, "other-chip");
  EXPECT_EQ(one.plan.profile.kinds[0].front().device_group, 0);
  ASSERT_EQ(one.notes.size(), 1U);
  EXPECT_THAT(one.notes.front(),
              HasSubstr("ranks 0 to 3 on devices 4 to 7, ranks 4 to 7 on devices 0 to 3"));
}

TEST(SharedConfig, PermutesABandwidthMatrixWithTheDevices) {
  Plan plan = on_swapped_nodes();
  for (int from = 0; from < 8; ++from) {
    for (int to = 0; to < 8; ++to) plan.system.bandwidth_matrix.push_back(10 * from + to);
  }
  const std::vector<double> matrix = in_one_form(plan, "megatron").plan.system.bandwidth_matrix;
  ASSERT_EQ(matrix.size(), 64U);
  EXPECT_EQ(matrix[0 * 8 + 1], 45);
  EXPECT_EQ(matrix[0 * 8 + 4], 40);
  EXPECT_EQ(matrix[7 * 8 + 2], 36);
}

TEST(SharedConfig, RefusesNodesThatStagesFillInPart) {
  Plan plan = on_swapped_nodes();
  plan.stages[0].devices = {2, 3, 4, 5};
  plan.stages[1].devices = {0, 1, 6, 7};
  EXPECT_THAT(refusal_of(plan), HasSubstr("do not fill the computers one after the other"));
}

}  // namespace
}  // namespace braid
