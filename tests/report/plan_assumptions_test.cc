#include "braid/report/plan_assumptions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/frontend/model.h"

#include "report/plan_maker.h"

namespace braid {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(PlanAssumptions, TablesOfSamplesAreUpdatedWhole) {
  Parallelism p;
  p.num_micro_batches = 4;
  const Plan plan = test::made_plan(p, 6);
  const Graph tables = load_model("dlrm-thesis", {.seq_len = 0, .dims = {}});
  EXPECT_THAT(plan_assumptions(&tables, plan), Contains(HasSubstr("Adam updates all rows")));
  // Every token's row of a language model's table is read sooner or later.
  const Graph tokens = load_model("gpt2", {.seq_len = 64, .dims = {}});
  EXPECT_THAT(plan_assumptions(&tokens, plan), IsEmpty());
}

}  // namespace
}  // namespace braid
