#include "braid/serve/serving_plan.h"

#include <gtest/gtest.h>

#include "braid/base/error.h"

#include "serve/serving_fixture.h"

namespace braid {
namespace {

using test::ServingFixture;

double best(const ServingJob& job) {
  const ServingOutcome outcome = plan_serving(job);
  return outcome.plan ? outcome.plan->requests_per_s_per_device() : 0;
}

TEST(ServingPlan, IsTheBestOfItsSpace) {
  const ServingFixture with("llama-3-8b", "dgx-h100:2", "vllm");
  for (const double tpot_s : {0.012, 0.05}) {
    for (const bool disaggregated : {false, true}) {
      ServingJob job = with.job(1024, 128);
      job.tpot_s = tpot_s;
      job.disaggregated = disaggregated;
      const ServingOutcome found = plan_serving(job);
      const ServingOutcome all = plan_serving_exhaustively(job);
      ASSERT_EQ(found.plan.has_value(), all.plan.has_value());
      if (!found.plan) continue;
      EXPECT_DOUBLE_EQ(found.plan->requests_per_s_per_device(),
                       all.plan->requests_per_s_per_device());
      EXPECT_LE(found.evaluated, all.evaluated);
      EXPECT_LE(found.plan->tpot_s, tpot_s);
      EXPECT_LE(found.plan->ttft_s, job.ttft_s);
    }
  }
}

TEST(ServingPlan, MoreMemoryBandwidthAndDevicesNeverHurt) {
  const ServingFixture with("llama-3-8b", "dgx-h100:2", "vllm");
  const double base = best(with.job(1024, 128));
  EXPECT_GT(base, 0);
  ServingFixture more("llama-3-8b", "dgx-h100:2", "vllm");
  more.system.groups.front().chip.memory.bytes *= 1.5;
  EXPECT_GE(best(more.job(1024, 128)), base);
  more.system.groups.front().chip.memory.bytes_per_s *= 1.3;
  EXPECT_GE(best(more.job(1024, 128)), base);
  const ServingFixture larger("llama-3-8b", "dgx-h100:4", "vllm");
  EXPECT_GE(best(larger.job(1024, 128)), base);
}

TEST(ServingPlan, LooserTargetsNeverHurt) {
  const ServingFixture with("llama-3-8b", "dgx-h100:2", "sglang");
  double before = 0;
  for (const double tpot_s : {0.005, 0.01, 0.02, 0.04}) {
    ServingJob job = with.job(512, 128);
    job.tpot_s = tpot_s;
    const double now = best(job);
    EXPECT_GE(now, before);
    before = now;
  }
}

TEST(ServingPlan, SaysWhatCannotBe) {
  const ServingFixture with("llama-3-8b", "dgx-h100:1", "vllm");
  ServingJob job = with.job(1024, 128);
  job.ttft_s = 1e-4;
  const ServingOutcome none = plan_serving(job);
  EXPECT_FALSE(none.plan);
  EXPECT_GT(none.least_ttft_s, job.ttft_s);
  const ServingJob longer = with.job(1e6, 128);
  EXPECT_THROW(plan_serving(longer), Error);
  const ServingFixture big("deepseek-v3", "dgx-h100:1", "vllm");
  EXPECT_THROW(plan_serving(big.job(1024, 128)), Error);
}

TEST(ServingPlan, DevicesForARateAreWholeWorkers) {
  ServingPlan plan;
  plan.decode.workers = 2;
  plan.decode.layout = {4, 1, 1, 4, 1};
  plan.requests_per_s = 10;
  EXPECT_EQ(devices_for_rate(plan, 5), 4);
  EXPECT_EQ(devices_for_rate(plan, 5.1), 8);
  EXPECT_EQ(devices_for_rate(plan, 40), 32);
}

TEST(ServingPlan, FrontIsSortedAndUndominated) {
  const ServingFixture with("llama-3-8b", "dgx-h100:2", "vllm");
  const ServingOutcome outcome = plan_serving(with.job(1024, 128));
  ASSERT_GT(outcome.front.size(), 2U);
  for (std::size_t i = 1; i < outcome.front.size(); ++i) {
    EXPECT_LT(outcome.front[i - 1].tpot_s, outcome.front[i].tpot_s);
    EXPECT_LT(outcome.front[i - 1].tokens_per_s_per_device,
              outcome.front[i].tokens_per_s_per_device);
  }
}

}  // namespace
}  // namespace braid
