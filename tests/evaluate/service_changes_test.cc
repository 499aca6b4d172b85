#include "braid/evaluate/service_changes.h"

#include <algorithm>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/evaluate/service_evaluation.h"

#include "serve/serving_fixture.h"

namespace braid {
namespace {

using test::ServingFixture;
using testing::HasSubstr;
using testing::IsEmpty;

/// From whatever service of the space, changes lead to the best and say what they do.
TEST(ServiceChanges, LeadToTheBest) {
  const ServingFixture with("qwen3-30b-a3b", "dgx-h100:8", "vllm");
  std::mt19937 random(1);
  const std::vector<ServingLayout> layouts = serving_layouts(with.model, with.system);
  for (const bool disaggregated : {false, true}) {
    ServingJob job = with.job(2048, 256);
    job.aggregated = !disaggregated;
    job.disaggregated = disaggregated;
    const ServingPlan best = *plan_serving(job).plan;
    for (int trial = 0; trial < 6; ++trial) {
      const auto any = [&](auto... of) {
        const double all[] = {static_cast<double>(of)...};
        return all[random() % std::size(all)];
      };
      ServingPlan mine;
      mine.disaggregated = disaggregated;
      for (WorkerPlan* each : {&mine.decode, &mine.prefill}) {
        *each = {&with.engine,
                 job.formats.front(),
                 layouts[random() % layouts.size()],
                 1,
                 {any(2048, 4096, 16384), any(4, 16, 64)},
                 0};
      }
      const std::vector<ServiceChange> changes = service_changes(mine, best, job);
      if (changes.empty()) continue;
      const StatedTimes& last = changes.back().after;
      EXPECT_EQ(last.plan.decode.layout, best.decode.layout);
      EXPECT_NEAR(last.plan.requests_per_s_per_device(), best.requests_per_s_per_device(),
                  1e-9 * best.requests_per_s_per_device());
      for (const ServiceChange& change : changes) {
        EXPECT_THAT(change.what, HasSubstr(" -> "));
        const StatedTimes again = stated_times(change.after.plan, job);
        EXPECT_EQ(again.plan.requests_per_s, change.after.plan.requests_per_s);
        EXPECT_LE(again.plan.requests_per_s_per_device(),
                  best.requests_per_s_per_device() * (1 + 1e-9));
      }
    }
    EXPECT_THAT(service_changes(best, best, job), IsEmpty());
  }
}

TEST(ServiceEvaluation, IsNeverBetterThanTheBestOfItsSpace) {
  const ServingFixture with("llama-3-8b", "dgx-h100:4", "sglang");
  const ServingJob job = with.job(1024, 128);
  for (const ServingLayout& layout : serving_layouts(with.model, with.system)) {
    for (const double chunk : kChunkSizes) {
      StatedService stated;
      stated.plan.decode = {&with.engine,         job.formats.front(), layout,
                            4 / layout.devices(), {chunk, 32},         0};
      const ServiceEvaluation found = evaluate_service(stated, job, true);
      ASSERT_TRUE(found.best);
      EXPECT_GE(found.best->plan.requests_per_s_per_device(),
                found.mine.plan.requests_per_s_per_device() * (1 - 1e-9));
      EXPECT_THAT(service_evaluation_text(found, job), HasSubstr("Within both targets"));
    }
  }
}

}  // namespace
}  // namespace braid
