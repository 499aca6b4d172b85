#include "braid/trust/ratios.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

namespace braid {
namespace {

RunError run_with(double tp, double dp, double error) {
  RunError run;
  run.source = "a";
  run.model = "model";
  run.traits.chip = "h100-sxm";
  run.traits.devices = tp * dp;
  run.traits.tp = tp;
  run.traits.dp = dp;
  run.error = error;
  return run;
}

TEST(Ratios, ArePairsOfOneJobThatIsSplitDifferently) {
  Evidence runs = {run_with(1, 8, 0.3), run_with(2, 4, 0.25), run_with(2, 4, 0.2)};
  runs.push_back(run_with(1, 16, 0.9));  // On more devices: another job.
  const std::vector<RatioError> pairs = ratio_errors(runs);
  ASSERT_EQ(pairs.size(), 2U);
  EXPECT_NEAR(pairs[0].error, 0.05, 1e-12);
  EXPECT_NEAR(pairs[1].error, 0.1, 1e-12);
  EXPECT_EQ(pairs[0].changed, 0b100010U);
}

TEST(Ratios, CommonErrorsCancel) {
  const Evidence runs = {run_with(1, 8, 0.3), run_with(2, 4, 0.3), run_with(4, 2, 0.3)};
  const auto interval = ratio_interval(runs[0].traits, runs[1].traits, ratio_errors(runs));
  ASSERT_TRUE(interval);
  EXPECT_EQ(interval->width(), 0);
  EXPECT_FALSE(ratio_interval(runs[0].traits, runs[1].traits, {}).has_value());
}

/// Jobs are left out in turn: how many of their ratios lie within what the others give.
TEST(Ratios, OfTheProgramsEvidenceLieWithinInFourOfFive) {
  const std::vector<RatioError>& pairs = ratio_errors();
  ASSERT_GT(pairs.size(), 1000U);
  double inside = 0, jobs = 0;
  for (std::size_t begin = 0, end = 0; begin < pairs.size(); begin = end) {
    while (end < pairs.size() && pairs[end].family == pairs[begin].family) ++end;
    if (++jobs > 60) break;
    std::vector<RatioError> others;
    for (const RatioError& pair : pairs) {
      if (pair.family != pairs[begin].family) others.push_back(pair);
    }
    // The job's middle pair.
    const RatioError& pair = pairs[(begin + end) / 2];
    JobTraits a, b;
    const auto differs = [&](unsigned bit) { return (pair.changed >> bit & 1U) != 0 ? 2.0 : 1.0; };
    b.tp = differs(5);
    b.pp = differs(4);
    b.cp = differs(3);
    b.ep = differs(2);
    b.dp = differs(1);
    b.micro_batch_tokens = differs(0);
    inside += pair.error <= std::log(ratio_interval(a, b, others)->high) ? 1 : 0;
  }
  EXPECT_GT(inside / jobs, 0.68);
  EXPECT_LT(inside / jobs, 0.95);
}

}  // namespace
}  // namespace braid
