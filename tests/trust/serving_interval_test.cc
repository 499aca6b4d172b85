#include "braid/trust/serving_interval.h"

#include <cmath>

#include <gtest/gtest.h>

#include "braid/base/error.h"

namespace braid {
namespace {

const ServingTraits kService{"vllm", "h100-sxm", "llama-3-70b", "fp8", false};

ServingEvidence evidence_of(const ServingTraits& traits, int runs, double most) {
  ServingEvidence evidence;
  for (int i = 1; i <= runs; ++i) {
    const double error = most * i / runs * (i % 2 == 0 ? 1 : -1);
    evidence.push_back({traits, i % 5, error, 2 * error});
  }
  return evidence;
}

TEST(ServingInterval, OfManyRunsAlikeIsTheirQuantile) {
  const ServingIntervals sure = serving_intervals(kService, evidence_of(kService, 1000, 0.5));
  EXPECT_NEAR(std::log(sure.tpot.high), 0.4, 0.002);
  EXPECT_NEAR(std::log(sure.ttft.low), -0.8, 0.004);
}

TEST(ServingInterval, GrowsWithTheDistance) {
  ServingEvidence evidence = evidence_of(kService, 40, 0.1);
  ServingTraits other = kService;
  other.engine = "sglang";
  const ServingEvidence far = evidence_of(other, 40, 1);
  evidence.insert(evidence.end(), far.begin(), far.end());
  ServingTraits between = other;
  between.model = "qwen3-32b";
  const double near_width = serving_intervals(kService, evidence).tpot.width();
  EXPECT_LT(near_width, serving_intervals(between, evidence).tpot.width());
  // One run alone says little: the worst of all is as near.
  EXPECT_NEAR(std::log(serving_intervals(kService, evidence_of(kService, 1, 0.1)).tpot.high), 0.1,
              1e-12);
}

TEST(ServingInterval, FilterLeavesOut) {
  const ServingEvidence evidence = evidence_of(kService, 100, 0.5);
  const auto none_of = [](const ServingError& run) { return std::abs(run.tpot) < 0.1; };
  EXPECT_LT(serving_intervals(kService, evidence, none_of).tpot.width(),
            serving_intervals(kService, evidence).tpot.width());
}

TEST(ServingEvidence, ReadsBackAsWritten) {
  const ServingEvidence& runs = serving_evidence();
  ASSERT_GT(runs.size(), 1000U);
  EXPECT_EQ(parse_serving_evidence(serving_evidence_text(runs), "evidence.csv"), runs);
}

TEST(ServingEvidence, MistakesAreNamed) {
  EXPECT_THROW(parse_serving_evidence("engine,mode\nvllm,aggregated\n", "e.csv"), Error);
  EXPECT_THROW(parse_serving_evidence(
                   "engine,mode,chip,model,format,part,tpot,ttft\nv,a,c,m,f,0,x,1\n", "e.csv"),
               Error);
}

}  // namespace
}  // namespace braid
